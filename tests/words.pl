#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Read the names of files from standard input and find habits of phrasing that make a sentence slow to read.
#
# usage: words.pl RECORDED [table|lower [PREFIX...]|list FILE...]
#
# (1) Text is what a person reads: comments, strings with a space, pages, and names of tests. SQL in C strings, code in
#     pages and text between backquotes are not text.
# (2) A file may have as many hits in 1,000 words as RECORDED says, or 4 if it is not listed there; one hit is always
#     allowed. `lower` lowers the recorded numbers to the present ones and never raises one.
# (3) A name in backquotes in a README or a page of docs/ must exist: a path that begins with a folder of this tree, a
#     file that ends in .c, .h or .[ch], and every annal_ name.
use strict;
use warnings;

my $start = qr/(?:\A|[.;:]\s+|\n[ \t]*\n\s*|\n\s*[-*]\s+|\|\s+|")/;
my @habits = (
    [ 'use a noun as the subject',              qr/$start(?:Who|Whoever|What|Whose|Where)\s+[a-z]+/ ],
    [ 'repeat the noun, use "for"',             qr/\b(?:that|those)\s+of\b|${start}Of\s+(?:an?|the|each|two|several|what|those|them|all|many|it|that)\b/ ],
    [ 'exists, is missing',                     qr/\b(?:is|are|was|were|be)\s+(?:not\s+)?(?:there|here)\b/ ],
    [ 'name who reports or asks',               qr/\b(?:is|are|was|were|be|been)\s+(?:not\s+)?(?:said|told|asked|named)\b/ ],
    [ 'continue',                               qr/\b(?:go|goes|going|went)\s+on\b/ ],
    [ 'arrive, be appended, follow',            qr/\b(?:comes?|came|coming)\b/ ],
    [ 'copy, download, receive',                qr/\b(?:brings?|brought)\b|\b(?:gets?|got)\s+(?:its|it|what|another|none|these|those)\b/ ],
    [ 'create, build, write',                   qr/\b(?:is|are|was|were|be|been)\s+made\b|\bmakes?\s+(?:none|one|it|them)\b/ ],
    [ 'own, hold, contain',                     qr/\b(?:has|have|had)\s+(?:it|them|none|one)\b|\b[Ww]ho\s+has\b/ ],
    [ 'is not a, does not exist',               qr/\b(?:is|are|was|were)\s+(?:no\s+[a-km-z]|none\b)/ ],
    [ 'unreachable, after',                     qr/\b(?:away|behind)\b/ ],
    [ 'unchanged, differs',                     qr/\b(?:as|what|where)\s+(?:it|they)\s+(?:is|are|was|were)\b/ ],
    [ 'no process, a caller',                   qr/\b(?:[Nn]o|[Ss]ome|[Aa]ny)body\b|\b[Ww]hoever\b/ ],
    [ 'N, again',                               qr/\bso\s+(?:many|long|much|old|large|often|far)\b|\b(?:anew|meanwhile|again\s+and\s+again|for\s+ever)\b/ ],
    [ 'repeat the noun',                        qr/\b(?:the|that|this|another|of|than|with|without)\s+ones?\b/ ],
);
my @groups = ( 'messages', 'help texts', 'man page and docs', 'public headers', 'other comments', 'names of tests' );

my ( $recorded_name, $mode, @only ) = @ARGV;
$mode //= '';
my ( %words, %hits, %group_words, %group_hits, %group_files, %names, %said );

# Count the words and hits of one piece of text, which begins in this line.
sub text {
    my ( $file, $group, $line, $text ) = @_;
    my $count = () = $text =~ /[A-Za-z][A-Za-z'-]*/g;
    return if $count < 2;
    $words{$file} += $count;
    $group_words{$group} += $count;
    for my $habit (@habits) {
        my ( $what, $pattern ) = @$habit;
        while ( $text =~ /$pattern/g ) {
            my ( $from, $to ) = ( $-[0], $+[0] );
            my $at = $line + ( substr( $text, 0, $to ) =~ tr/\n// );
            my $around = substr( $text, $from > 50 ? $from - 50 : 0, $to - $from + ( $from > 50 ? 100 : $from + 50 ) );
            my $found = substr( $text, $from, $to - $from ) . ( substr( $text, $to ) =~ /^(\w*)/ ? $1 : '' );
            $found =~ s/^[^A-Za-z]+//;
            s/\s+/ /g for $around, $found;
            $hits{$file}++;
            $group_hits{$group}++;
            push @{ $said{$file} }, "$file:$at: \"$found\": $what\n    … $around …";
        }
    }
}

# C and TypeScript: comments, strings, names of tests.
sub c_file {
    my ( $file, $all ) = @_;
    my $is_test = $file =~ m{^tests/};
    my $comments = $file =~ m{/include/annal/} ? 'public headers' : 'other comments';
    my ( $line, $before ) = ( 1, '' );
    my ( $held, $held_line, $held_group ) = ( '', 0, '' );    # adjacent strings are one text
    my $give = sub {
        text( $file, $held_group, $held_line, $held )
            if $held =~ /[a-z] [a-z]/ && $held !~ /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|DROP|ALTER|PRAGMA|REPLACE|SET|COPY)\b/ && !$is_test;
        $held = '';
    };
    while ( $all =~ m{\G(?:(/\*.*?\*/|(?<![:"'\\])//[^\n]*)|("(?:[^"\\\n]|\\.)*"|`[^`]*`)|('(?:[^'\\\n]|\\.)*')|((?:[^"'/`])+)|(.))}gcs ) {
        my $token = $1 // $2 // $3 // $4 // $5;
        if ( defined $1 ) {
            $give->();
            $token =~ s{^/\*+|\*/$}{}g;
            $token =~ s{^[ \t]*\*(?!\S)}{}gm;
            text( $file, $comments, $line, $token ) if $token !~ /SPDX/;
        }
        elsif ( defined $2 ) {
            ( my $string = $2 ) =~ s/^["`]|["`]$//g;
            $string =~ s/\\n/  /g;
            $string =~ s/\\(.)/$1/g;
            $string =~ s/%[-0-9.*]*[a-z]+|\$\{[^}]*\}/N/g;
            if ( $held eq '' ) {
                ( $held_line, $held_group ) = ( $line, 'messages' );
                $held_group = 'help texts' if $before =~ /\b(?:OPTION|OPERAND|SWITCH|REST|POSITIONAL)\w*\(|\.(?:summary|about|notes?|help|example|synopsis|usage)\b/;
            }
            $held .= $string;
        }
        else {
            if ( defined $4 ) {
                if ($is_test) {
                    while ( $token =~ /START_TEST\((\w+)\)/g ) {
                        ( my $name = $1 ) =~ tr/_/ /;
                        text( $file, 'names of tests', $line + ( substr( $token, 0, $-[0] ) =~ tr/\n// ), ucfirst $name );
                    }
                }
            }
            if ( $token =~ /^\s*(?:PRI[a-z0-9A-Z]+|[A-Z_]+)?\s*$/ && $held ne '' ) {
                $held .= $token =~ s/\S+/N/r;
            }
            else { $give->(); }
            $before .= $token;
            $before = $1 if $before =~ /[;{](?!.*[;{])(.*)$/s;
            $before = $1 if $before =~ /^.*\),\s*(.*)$/s;
            $before = $1 if $before =~ /^.*,(\s*\.\w.*)$/s;
        }
        $line += ( $1 // $2 // $3 // $4 // $5 ) =~ tr/\n//;
    }
    $give->();
}

# SQL: comments, among them the help of verbs, and strings. Lines of a comment that follow each other are one text.
sub sql_file {
    my ( $file, $all ) = @_;
    my ( $line, $held, $held_line, $held_group ) = ( 0, '', 0, '' );
    for ( split /\n/, $all ) {
        $line++;
        if (/^\s*--(.*)/) {
            my $said = $1;
            my $group = 'other comments';
            $group = 'help texts' if $said =~ /^ (?:verb|noun) |^   (?:--)?\w+.*"|^   (?:says|about|example)\b|^      +\S/;
            if ( $held eq '' || $said =~ /^ ?-*$|^ (?:verb|noun)|^   (?:--)?\S/ ) {
                text( $file, $held_group, $held_line, $held ) if $held ne '';
                ( $held, $held_line, $held_group ) = ( '', $line, $group );
            }
            $said =~ s/^\s*(?:says|about|verb|noun)\s+/ /;
            $said =~ s/^\s+//;
            $held .= "$said\n" if $said !~ /SPDX|^example|^-+$/;
            next;
        }
        text( $file, $held_group, $held_line, $held ) if $held ne '';
        $held = '';
        text( $file, 'other comments', $line, "$1" ) if s/\s--\s+(.*)//;
        text( $file, 'messages', $line, "$1" ) while /'([^']*[a-z] [a-z][^']*)'/g;
    }
    text( $file, $held_group, $held_line, $held ) if $held ne '';
}

sub python_file {
    my ( $file, $all ) = @_;
    my $line = 1;
    while ( $all =~ m{\G(?:(\#[^\n]*)|"""(.*?)"""|("(?:[^"\\\n]|\\.)*")|('(?:[^'\\\n]|\\.)*')|([^"'#]+)|(.))}gcs ) {
        my $whole = substr( $all, $-[0], $+[0] - $-[0] );
        if    ( defined $1 ) { text( $file, 'other comments', $line, "$1" ) if $1 !~ /SPDX|^#!/; }
        elsif ( defined $2 ) { text( $file, 'other comments', $line, "$2" ); }
        elsif ( defined $3 ) {
            my $string = substr $whole, 1, -1;
            text( $file, 'messages', $line, $string ) if $string =~ /[a-z] [a-z]/ && $file !~ /^tests/;
        }
        $line += $whole =~ tr/\n//;
    }
}

# Markdown, and the page of the manual: without code.
sub page_file {
    my ( $file, $all ) = @_;
    if ( $file =~ /\.md$/ ) {
        $all =~ s{^(\s*```.*?^\s*```)}{ "\n" x ($1 =~ tr/\n//) }gmse;
        $all =~ s{(`[^`]*`)}{ 'x' . "\n" x ($1 =~ tr/\n//) }ge;
        $all =~ s{\]\([^)]*\)}{]}g;
    }
    else {
        $all =~ s{^\.nf$(.*?)^\.fi$}{ "\n" x ($1 =~ tr/\n//) }gmse;
        $all =~ s{^\.\\".*$}{}gm;
        $all =~ s{^\.(?:TP|PP|P|SH|SS|IP|RS|RE)\b}{\n}gm;
        $all =~ s{^\.[A-Z]+\s?}{}gm;
        $all =~ s{\\f.|\\&}{}g;
        $all =~ s{\\-}{-}g;
    }
    my $line = 1;
    for my $piece ( split /(\n[ \t]*\n)/, $all ) {
        text( $file, 'man page and docs', $line, $piece );
        $line += $piece =~ tr/\n//;
    }
}

my ( @pages, %tree, %included );
while ( my $file = <STDIN> ) {
    chomp $file;
    $tree{$file} = 1;
    $tree{ substr $file, 0, $+[0] } = 1 while $file =~ m{/}g;
    next if $file !~ m{\.(?:c|h|ts|tsx|sql|py|md|in|cmake)$|CMakeLists.txt$|^tools/help/} || $file =~ m{^docs/decisions/\d|^CHANGELOG|^tests/(?:data|golden|fuzz/corpus)|/dist/};
    open my $in, '<', $file or die "$file: $!\n";
    my $all = do { local $/; <$in> };
    if ( $file !~ /\.md$/ ) {
        $names{$1} = 1 while $all =~ /\b(annal_\w+)/g;
        $included{$1} = 1 while $all =~ /#include <([^>]+)>/g;
    }
    if    ( $file =~ /\.(?:c|h|ts|tsx)$/ ) { c_file( $file, $all ); }
    elsif ( $file =~ /\.sql$/ )            { sql_file( $file, $all ); }
    elsif ( $file =~ /\.py$/ )             { python_file( $file, $all ); }
    elsif ( $file =~ m{^tools/help/} ) {
        $all =~ s/^SPDX.*//;
        text( $file, 'help texts', 1, $all );
    }
    elsif ( $file =~ m{\.md$|manual/.*\.in$} ) {
        page_file( $file, $all );
        push @pages, [ $file, $all ] if $file =~ /\.md$/ && $file ne 'tests/requirements.md';
    }
}

my $bad = 0;

# Rule 3.
my %ends;
for ( keys %tree ) { $ends{$_} = 1 while s{^[^/]+/}{} && length; }
for (@pages) {
    my ( $page, $all ) = @$_;
    ( my $folder = $page ) =~ s{[^/]*$}{};
    $all =~ s{^(\s*```.*?^\s*```)}{ "\n" x ($1 =~ tr/\n//) }gmse;
    my $line = 0;
    for ( split /\n/, $all ) {
        $line++;
        while (/`([^`]+)`/g) {
            my $name = $1;
            next if $name =~ /\b[A-Z]{2,}\b|\{/;
            $name =~ s{^(?:\.\./)+}{};
            my @wanted;
            if    ( $name =~ m{^(annal_\w+)\b(?!\*)} )             { @wanted = ($1) if !$names{$1} && $name !~ /^annal_\w+\*/; }
            elsif ( $name =~ m{^<?([\w./-]+)\.\[ch\]$} )            { @wanted = ( "$1.c", "$1.h" ); }
            elsif ( $name =~ m{^<?([\w./-]+\.[ch])>?$} )            { @wanted = ($1); }
            elsif ( $name =~ m{^((?:journal|index|snapshot|replay|tools|bindings|tests|docs)/[\w./-]*)$} ) { @wanted = ($1); }
            if ( $folder && $page !~ /^docs/ && @wanted && $wanted[0] !~ m{/|^annal_} ) {
                next if grep { my $file = $_; $included{$file} || grep { m{^\Q$folder\E(?:.*/)?\Q$file\E$} } keys %tree } @wanted;
            }
            else {
                next if !@wanted || grep { $tree{$_} || $ends{$_} || $tree{"$_/"} || $ends{"$_/"} || $tree{"$folder$_"} || $included{$_} } @wanted;
            }
            print "$page:$line: `$name` does not exist\n";
            $bad = 1;
        }
    }
}

my %recorded;
my @lines;
if ( open my $in, '<', $recorded_name ) {
    while (<$in>) {
        push @lines, $_;
        $recorded{$2} = $1 if /^(\d+) (.*)$/;
    }
}
sub rate { my ($file) = @_; return 1000 * ( $hits{$file} // 0 ) / $words{$file}; }
sub up   { my ($number) = @_; return int($number) + ( $number > int($number) ? 1 : 0 ); }

if ( $mode eq 'table' ) {
    printf "%-20s %8s %6s %10s\n", 'text', 'words', 'hits', 'per 1,000';
    printf "%-20s %8d %6d %10.1f\n", $_, $group_words{$_}, $group_hits{$_} // 0, 1000 * ( $group_hits{$_} // 0 ) / $group_words{$_} for @groups;
    my %folder;
    for ( keys %words ) {
        my $folder = m{^(.*)/} ? $1 : '.';
        $folder{$folder}[0] += $words{$_};
        $folder{$folder}[1] += $hits{$_} // 0;
    }
    print "\n";
    printf "%-30s %7d %5d %8.1f\n", $_, @{ $folder{$_} }, 1000 * $folder{$_}[1] / $folder{$_}[0] for sort keys %folder;
    exit 0;
}
if ( $mode eq 'list' ) {
    for my $file (@only) {
        printf "%s: %d words, %d hits, %.1f per 1,000\n", $file, $words{$file} // 0, $hits{$file} // 0, $words{$file} ? rate($file) : 0;
        print "$_\n" for @{ $said{$file} // [] };
    }
    exit 0;
}
if ( $mode eq 'record' || $mode eq 'lower' ) {
    open my $out, '>', $recorded_name or die "$recorded_name: $!\n";
    print $out grep { /^#/ } @lines;
    for my $file ( sort keys %words ) {
        my $now = up( rate($file) );
        my $limit = $mode eq 'lower' ? $recorded{$file} // 4 : $now;
        $limit = $now if $now < $limit && ( !@only || grep { index( $file, $_ ) == 0 } @only );
        print $out "$limit $file\n" if $limit > 4;
    }
    exit 0;
}

for my $file ( sort keys %hits ) {
    my $limit = $recorded{$file} // 4;
    my $allowed = up( $limit * $words{$file} / 1000 );
    $allowed = 1 if $allowed < 1;
    next if $hits{$file} <= $allowed;
    printf "%s: %d hits in %d words, %.1f per 1,000; allowed are %d\n", $file, $hits{$file}, $words{$file}, rate($file), $limit;
    print "$_\n" for @{ $said{$file} };
    $bad = 1;
}
exit $bad;
