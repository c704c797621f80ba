#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# floors.sh BUILD: print the floors of each room, from the object files in BUILD. A room is a folder of the product. Floor 0 calls
# no other file of its room; any other file is one floor above the highest file that it calls or names in a table. Files that call
# each other in a circle share a floor. Fails if a circle has more than two files, unless a line of tests/floors.txt has all of
# them, and if such a line has files that are no longer in the circle: so circles can only shrink.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

rooms='journal index snapshot replay tools'
for room in $rooms; do
    (cd "$build/$room/CMakeFiles" && find . -name '*.c.o' -exec nm -A {} +) |
        sed -nE "s|^\./[^/]*\.dir/([^:]*)\.c\.o:.* ([A-Za-z]) ([A-Za-z_][A-Za-z0-9_.]*)\$|$room/\1 \2 \3|p"
done | perl -e '
    my (%home, %uses, %files, %rooms);
    while (<STDIN>) {
        my ($file, $kind, $name) = split;
        # sqlite3_api: the functions of SQLite, which extension.c passes to every file of the extension.
        next if !-f "$file.c" || $name =~ /^(?:__|main$|sqlite3_api$)/;
        $files{$file} = 1;
        if ($kind eq "U") { $uses{$file}{$name} = 1; }
        elsif ($kind =~ /[TDRBVWC]/) { $home{$name}{$file} = 1; }
    }
    die "floors.sh: there are no object files\n" if !%files;
    my %down;
    for my $file (keys %files) {
        (my $room = $file) =~ s{/[^/]*$}{};
        push @{$rooms{$room}}, $file;
        for my $name (keys %{$uses{$file}}) {
            for my $other (keys %{$home{$name} || {}}) {
                $down{$file}{$other} = 1 if $other ne $file && $other =~ m{^\Q$room\E/[^/]*$};
            }
        }
    }
    # Tarjan: a circle is complete after all circles below it.
    my ($count, %index, %low, %on, @stack, %floor, @circles) = (0);
    sub visit {
        my ($file) = @_;
        $index{$file} = $low{$file} = $count++;
        push @stack, $file;
        $on{$file} = 1;
        for my $other (sort keys %{$down{$file} || {}}) {
            if (!defined $index{$other}) { visit($other); }
            my $reach = $on{$other} ? $low{$other} : $index{$file};
            $low{$file} = $reach if $reach < $low{$file};
        }
        return if $low{$file} != $index{$file};
        my ($other, @circle, %in) = ("");
        while ($other ne $file) { $other = pop @stack; delete $on{$other}; push @circle, $other; $in{$other} = 1; }
        my $floor = 0;
        for my $one (@circle) {
            for (grep { !$in{$_} } keys %{$down{$one} || {}}) { $floor = $floor{$_} + 1 if $floor <= $floor{$_}; }
        }
        $floor{$_} = $floor for @circle;
        push @circles, join " ", sort @circle if @circle > 1;
    }
    no warnings "recursion";
    for (sort keys %files) { visit($_) if !defined $index{$_}; }

    my ($bad, %allowed, %of) = (0);
    open my $in, "<", "tests/floors.txt" or die "tests/floors.txt: $!\n";
    while (<$in>) {
        next if /^#/ || !/^(\S+):((?: \w+)+)$/;
        my $room = $1;
        my @names = sort map { "$room/$_" } split " ", $2;
        # A file that is left out of this build may hold a circle together.
        $allowed{"@names"} = (grep { -f "$_.c" && !$files{$_} } @names) ? "partly" : "whole";
    }
    for (sort @circles) { m{^(.*?)/[^/ ]*(?: |$)}; push @{$of{$1}}, $_; }
    for my $room (sort keys %rooms) {
        my %at;
        push @{$at{$floor{$_}}}, m{([^/]*)$} for sort @{$rooms{$room}};
        print "$room\n";
        printf "%4d  %s\n", $_, join " ", @{$at{$_}} for sort { $b <=> $a } keys %at;
        for my $circle (@{$of{$room} || []}) {
            my @names = $circle =~ m{([^/ ]+)(?= |$)}g;
            print "      circle of ", scalar @names, ": @names\n";
            next if @names <= 2 || delete $allowed{$circle};
            next if grep { my $line = " $_ "; $allowed{$_} eq "partly" && !grep { index($line, " $_ ") < 0 } split " ", $circle } keys %allowed;
            $bad++;
            print STDERR "$room: these files call each other in a circle, which tests/floors.txt does not allow: @names\n";
        }
    }
    for (grep { $allowed{$_} eq "whole" } sort keys %allowed) { $bad++; print STDERR "tests/floors.txt: these files are no longer a circle; change or remove the line: $_\n"; }
    exit($bad ? 1 : 0);
'
