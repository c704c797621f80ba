#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Check that a reader finds a function by its name: each function that other files may call begins with the name of its
# file (annal__codec_event() in codec.c), or with the first words of that name (annal__pack_is_glob() in pack_header.c).
# A command's file begins with cmd_, its functions do not. Names of the public headers (annal_), and those in
# tests/prefixes.txt, are free. No two .c files of the product share a name.
set -eu
cd "$(dirname "$0")/.."

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT
sources=$(find journal index snapshot replay tools bindings -name node_modules -prune -o -name '*.c' -print | LC_ALL=C sort)

# shellcheck disable=SC2016,SC2086 # variables of perl; a list of names
perl -e '
    my %free;
    open my $in, "<", "tests/prefixes.txt" or die "tests/prefixes.txt: $!\n";
    while (<$in>) { $free{$1} = 1 if /^(\w+) /; }
    my (%seen, %used);
    for my $file (@ARGV) {
        open my $c, "<", $file or die "$file: $!\n";
        my $text = do { local $/; <$c> };
        (my $base = $file) =~ s{.*/|\.c$}{}g;
        print "$file: $seen{$base} has the same name\n" if $seen{$base};
        $seen{$base} = $file;
        next if $file =~ m{^bindings/};
        (my $own = $base) =~ s/^cmd_//;
        my @words = split /_/, $own;
        while ($text =~ /^(?!static\b|typedef\b|return\b|else\b|extern\b|START_TEST)[A-Za-z_][\w \t*]*?\b\**(\w+)\((?:[^;{}]*)\)\s*\{/gm) {
            my $name = $1;
            next if $name =~ /^(?:annal_(?!_)|sqlite3_|main$)/;
            if ($free{$name}) { $used{$name} = 1; next; }
            (my $plain = $name) =~ s/^annal__//;
            next if grep { $plain =~ /^\Q$_\E(?:_|$)/ } map { my $s = join "_", @words[0 .. $_]; ($s, $s =~ s/s$//r, $s . "s") } 0 .. $#words;
            print "$file: $name() does not begin with the name of the file\n";
        }
    }
    for (sort keys %free) { print "tests/prefixes.txt: $_() does not exist, or needs no line\n" if !$used{$_}; }
' $sources >"$bad"

[ ! -s "$bad" ] || {
    cat "$bad"
    exit 1
}
