# SPDX-License-Identifier: Apache-2.0
# Completion of draftscope(1) for fish. Like that for bash it asks the program itself: commands, options
# and values come from its --help, names from `draftscope list`, so that nothing here can go stale.
# Try it: source cli/draftscope.fish

# Standard output of the program that is being completed, never an error.
function __draftscope_ask
    set -l tokens (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $tokens[1])
    $program $argv </dev/null 2>/dev/null
end

# Prints "name<TAB>description" of the lines below heading $argv[1] of what the program prints for the
# other arguments.
function __draftscope_below
    set -l inside
    for line in (__draftscope_ask $argv[2..])
        if test "$line" = "$argv[1]"
            set inside yes
        else if test -z "$line"
            set inside
        else if test -n "$inside"
            string match -rq '^  (?<name>[a-z][a-z0-9.-]*) *(?<text>.*)' -- $line
            and printf '%s\t%s\n' $name $text
        end
    end
end

# Prints the names of a list, with their descriptions; --synonyms: methods also by their synonyms.
function __draftscope_names
    for line in (__draftscope_ask list $argv[1])
        set -l parts (string split -m 1 ' ' -- $line)
        set -l text (string trim -- "$parts[2]")
        printf '%s\t%s\n' $parts[1] $text
        if test "$argv[2]" = --synonyms
            for name in (string match -rg '; also (.*)' -- $text | string split ', ')
                printf '%s\t%s\n' $name (string replace -r '; also .*' '' -- $text)
            end
        end
    end
end

# Prints the options of a help text: name, letter, placeholder (empty: a flag), description, between tabs;
# first the usage line. Without a method that is chosen, the sections of methods are passed over.
function __draftscope_help # method, words of the command...
    set -l method $argv[1]
    set -l chosen
    test -n "$method"; and set chosen --method $method
    set -l open
    printf '%s\n' (__draftscope_ask $argv[2..] $chosen --help | string match -rg '^Usage: draftscope (.*)')[1] ''
    printf '%s\t%s\t%s\t%s\n' help h '' 'print this help'
    for line in (__draftscope_ask $argv[2..] $chosen --help)
        if string match -q 'Method *' -- $line; and test -z "$method"
            break
        else if string match -rq '^  (?:-(?<letter>[A-Za-z]), )?--(?<name>[a-z][a-z-]*)(?: (?<value>[^ ]+))?(?: +(?<text>.*))?$' -- $line
            test -n "$open"; and printf '%s\t\n' $open
            set open (printf '%s\t%s\t%s' $name "$letter" "$value")
            if test -n "$text"
                printf '%s\t%s\n' $open $text
                set open
            end
        else if test -n "$open" # of an option with a long value
            printf '%s\t%s\n' $open (string trim -- $line)
            set open
        end
    end
    test -n "$open"; and printf '%s\t\n' $open
    return 0
end

# Prints files that end in one of the arguments (none: any file), and folders; --folders: folders only.
# The command has no completions, so fish completes file names.
function __draftscope_files
    set -l found (complete -C "__draftscope_no_such_command "(commandline -ct | string replace -r '^--[a-z-]+=' ''))
    set -l prefix (commandline -ct | string match -r '^--[a-z-]+=')
    for name in $found
        set -l bare (string replace -r '\t.*' '' -- $name)
        set -l wanted
        string match -q '*/' -- $bare; and set wanted yes
        if test "$argv[1]" != --folders
            test (count $argv) = 0; and set wanted yes
            for ending in $argv
                string match -q "*$ending" -- $bare; and set wanted yes
            end
        end
        test -n "$wanted"; and printf '%s\n' "$prefix"$bare
    end
    return 0
end

# Prints what can stand for placeholder $argv[1] of the help: TRACE, FILE|bytes, auto|loop|expect, ...
# $argv[2]: the option it belongs to, empty for an argument; $argv[3]: the command.
function __draftscope_value
    set -l value "$argv[1]"
    set -l lines
    switch "$argv[2]:$value"
        case 'method:*'
            set lines (__draftscope_names methods)
        case 'speculation:*'
            set lines (__draftscope_below 'Policies of --speculation' serve --help)
        case rule:NAME
            set lines (__draftscope_names rules)
        case gpu:NAME
            set lines (__draftscope_below 'Machines of a roofline, peaks in Top/s without sparsity' list costs -v)
        case '*:SHAPE'
            set lines (__draftscope_below 'Models of a roofline (TARGET and DRAFT; DRAFT also: eagle, eagle3, mtp)' list costs -v)
        case '*:FILE|DIR' '*:NAME|FILE' '*:LIST|FILE'
            __draftscope_files
        case format:NAME
            set lines (__draftscope_names formats)
        case 'tokenizer:*'
            __draftscope_files .json
        case draft:FILE target:FILE
            __draftscope_files .npy .csv .safetensors
        case '*:SPEC'
            set lines (__draftscope_names models | string replace \t ':'\t)
        case '*:TRACE' '*:NAME.dst' '*:DIR'
            __draftscope_files --folders
        case '*:DIR|FILE.gguf'
            __draftscope_files .gguf
        case '*:RESULT'
            __draftscope_files .tsv .jsonl
        case '*:STEPS'
            __draftscope_files .jsonl
        case '*:IN' '*:LOGS'
            __draftscope_files .jsonl .jsonl.gz .jsonl.zst
        case '*:ROW' # or two traces, without --published
            set lines (__draftscope_below Rows validate --help)
            contains -- --published (commandline -opc); or __draftscope_files --folders
        case '*:PRESET*'
            set lines (__draftscope_below shape live list)
        case '*:FIGURE'
            set lines (__draftscope_names figures)
        case '*:SHARD' '*:FILE*'
            string match -q '*|*' -- $value; or __draftscope_files
    end
    if string match -q '*|*' -- $value
        for item in (string split '|' -- $value)
            switch $item
                case '*.json'
                case '*:*'
                    set -a lines (string replace -r ':.*' ':' -- $item)
                case '*'
                    string match -rq '^[A-Z]' -- $item; or set -a lines $item
            end
        end
    end
    # After "=", the word that is completed begins with the option; sweep, tune and serve take lists.
    set -l prefix (commandline -ct | string match -r '^--[a-z-]+=')
    if contains -- "$argv[3]" sweep tune serve
        set prefix (commandline -ct | string match -r '^.*,'; or printf '%s\n' $prefix)
    end
    test (count $lines) -gt 0; and printf '%s\n' "$prefix"$lines
    return 0
end

# Prints the placeholder of argument $argv[1] (from 0) in the usage line, the other arguments; the last one
# may repeat. After such a one, what follows "|" is another form of the command.
function __draftscope_argument
    set -l found
    set -l skip
    set -l many
    for word in $argv[2..]
        if string match -rq '^-|^\[-' -- $word
            set skip yes
            continue
        else if test $word = '|'
            test -n "$many"; and break
        else if string match -rq '^\[(?<name>[A-Z].*)\.\.\.\]$' -- $word
            set many yes
            set -a found $name
        else if string match -rq '^\[.*\](\.\.\.)?$' -- $word
        else if test -z "$skip"
            string match -q '*...' -- $word; and set many yes
            set -a found (string replace -r '\.\.\.$' '' -- $word)
        end
        set skip
    end
    if test $argv[1] -lt (count $found)
        printf '%s\n' $found[(math $argv[1] + 1)]
    else if test -n "$many"
        printf '%s\n' $found[-1]
    end
end

function __draftscope_complete
    set -l words (commandline -opc)[2..]
    set -l current (commandline -ct)
    set -l method
    if test (count $words) = 0
        __draftscope_below Commands --help
        printf '%s\t%s\n' --help 'print this help' --version 'print the version'
        return
    end
    string match -rq '^[a-z]' -- $words[1]; or return
    set -l path $words[1]
    set -l subcommands (__draftscope_below Commands $words[1] --help)
    if test (count $subcommands) -gt 0
        if test (count $words) = 1
            printf '%s\n' $subcommands
            printf '%s\t%s\n' --help 'print this help'
            return
        end
        set -a path $words[2]
    end
    set -e words[1..(count $path)]
    # The method that is chosen, if there is such a one.
    set -l chosen (string join \n -- $words | string match -rg '^--method=(.*)')
    if set -l i (contains -i -- --method $words)
        set -a chosen $words[(math $i + 1)]
    end
    if test -n "$chosen[-1]"
        __draftscope_names methods --synonyms | string match -rq '^'(string escape --style=regex -- $chosen[-1])\t
        and set method $chosen[-1]
    end
    set -l help (__draftscope_help "$method" $path)
    set -l usage (string split -n ' ' -- (string replace -- "$path" '' "$help[1]"))
    set -l options $help[2..]
    # The words before this one: options with their values, and how many arguments.
    set -l arguments 0
    set -l open
    set -l ended
    for word in $words
        if test -n "$open"
            set open
        else if test -z "$ended"; and test "$word" = --
            set ended yes
        else if test -z "$ended"; and string match -rq '^-.' -- $word
            for line in $options
                set -l option (string split \t -- $line)
                if test "$word" = "--$option[1]"; or test "$word" = "-$option[2]"
                    test -n "$option[3]"; and set open $option[1] $option[3]
                end
            end
        else
            set arguments (math $arguments + 1)
        end
    end
    if test -n "$open"
        __draftscope_value $open[2] $open[1] $path[1]
    else if test -z "$ended"; and string match -rq '^--(?<name>[a-z-]+)=' -- $current
        for line in $options
            set -l option (string split \t -- $line)
            test "$option[1]" = $name; and test -n "$option[3]"
            and __draftscope_value $option[3] $name $path[1]
        end
    else if test -z "$ended"; and string match -q -- '-*' $current
        for line in $options
            set -l option (string split \t -- $line)
            test -n "$option[1]"; and printf '%s\t%s\n' --$option[1] "$option[4]"
        end
    else
        __draftscope_value (__draftscope_argument $arguments $usage) '' $path[1]
    end
    return 0
end

complete -c draftscope -f -a '(__draftscope_complete)'
