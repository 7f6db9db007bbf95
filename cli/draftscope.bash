# SPDX-License-Identifier: Apache-2.0
# Completion of draftscope(1) for bash. It asks the program itself: commands, options and values
# come from its --help, names from `draftscope list`, so that nothing here can go stale.
# Works without the bash-completion package. Try it: source cli/draftscope.bash

# Standard output of the program that is being completed, never an error.
_draftscope_ask() {
    "$program" "$@" </dev/null 2>/dev/null
}

# Adds what `compgen ARGUMENTS` finds for $cur; $prefix is what stands before it in the word.
_draftscope_add() {
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$prefix$line")
    done < <(compgen "$@" -- "$cur" 2>/dev/null)
}

# The first words of the lines below heading $1 of what the program says to the other arguments.
_draftscope_below() {
    local line inside='' heading=$1
    shift
    while IFS= read -r line; do
        if [[ $line == "$heading" ]]; then
            inside=1
        elif [[ -z $line ]]; then
            inside=
        elif [[ $inside && $line =~ ^\ \ ([a-z][a-z0-9.-]*) ]]; then
            printf '%s\n' "${BASH_REMATCH[1]}"
        fi
    done < <(_draftscope_ask "$@")
}

_draftscope_commands() {
    _draftscope_below Commands "$@" --help
}

# The names of a list: methods, rules, models, figures, formats.
_draftscope_names() {
    local name rest
    while read -r name rest; do
        printf '%s\n' "$name"
    done < <(_draftscope_ask list "$1")
}

# The names of methods and their synonyms, which the list prints as "; also NAME, NAME".
_draftscope_methods() {
    local name rest
    while read -r name rest; do
        printf '%s\n' "$name"
        [[ $rest == *'; also '* ]] && tr -d ',' <<<"${rest##*; also }" | tr ' ' '\n'
    done < <(_draftscope_ask list methods)
}

# Files that end in one of the arguments, and folders on the way to them.
_draftscope_files() {
    local end
    cur=${cur#[\'\"]} cur=${cur//\\/}
    compopt -o filenames 2>/dev/null
    for end; do
        _draftscope_add -f -X "!*$end"
    done
    _draftscope_add -d -X '*.dst'
}

_draftscope_traces() {
    cur=${cur#[\'\"]} cur=${cur//\\/}
    compopt -o filenames 2>/dev/null
    _draftscope_add -d
}

# What can stand for a placeholder of the help: TRACE, FILE|bytes, auto|loop|expect, ...
# $2: the option it belongs to, empty for an argument.
_draftscope_value() {
    local item words='' IFS='| '
    case $2:$1 in
    method:*) words=$(_draftscope_names methods) ;;
    speculation:*) words=$(_draftscope_below 'Policies of --speculation' serve --help) ;;
    rule:NAME) words=$(_draftscope_names rules) ;;
    gpu:NAME) words=$(_draftscope_below 'Machines of a roofline, peaks in Top/s without sparsity' list costs -v) ;;
    *:SHAPE) words=$(_draftscope_below 'Models of a roofline (TARGET and DRAFT; DRAFT also: eagle, eagle3, mtp)' list costs -v) ;;
    *:'FILE|DIR' | *:'NAME|FILE' | *:'LIST|FILE') _draftscope_files '' ;;
    format:NAME) words=$(_draftscope_names formats) ;;
    tokenizer:*) _draftscope_files .json ;;
    draft:FILE | target:FILE) _draftscope_files .npy .csv .safetensors ;;
    *:SPEC) words=$(_draftscope_names models) && words=${words//$'\n'/: }: ;;
    *:TRACE | *:NAME.dst) _draftscope_traces ;;
    *:RESULT) _draftscope_files .tsv .jsonl ;;
    *:SHARD) _draftscope_files '' ;;
    *:STEPS) _draftscope_files .jsonl ;;
    *:IN | *:LOGS) _draftscope_files .jsonl .jsonl.gz .jsonl.zst ;;
    *:DIR) _draftscope_traces ;;
    *:'DIR|FILE.gguf') _draftscope_traces; _draftscope_files .gguf ;;
    *:ROW) # or two traces, without --published
        words=$(_draftscope_below Rows validate --help)
        [[ " ${COMP_WORDS[*]} " == *' --published '* ]] || _draftscope_traces
        ;;
    *:PRESET*) words=$(_draftscope_below shape live list) ;;
    *:FIGURE) words=$(_draftscope_names figures) ;;
    *:FILE*) [[ $1 == *\|* ]] || _draftscope_files '' ;;
    esac
    if [[ $1 == *\|* ]]; then
        for item in $1; do
            case $item in
            [A-Z]* | *.json) ;;
            *:*) words+=" ${item%%:*}:" ;;
            *) words+=" $item" ;;
            esac
        done
    fi
    [[ $words ]] || return 0
    IFS=$' \n'
    # sweep, tune and serve take lists: complete after the last comma.
    if [[ $command == @(sweep|tune|serve) && $cur == *,* ]]; then
        prefix=${cur%,*}, cur=${cur##*,}
    fi
    _draftscope_add -W "$words"
    [[ ${COMPREPLY[*]} == *: ]] && compopt -o nospace 2>/dev/null
    return 0
}

# Reads a help text into names[], letters[], values[] (empty: a flag) and usage. Without a method
# that is chosen, the sections of methods are passed over.
_draftscope_read_help() {
    local line
    names=(help) letters=(h) values=('') usage=''
    while IFS= read -r line; do
        if [[ $line == 'Usage: draftscope '* ]]; then
            usage=${line#Usage: draftscope }
        elif [[ $line == 'Method '* && -z $method ]]; then
            return
        elif [[ $line =~ ^\ \ (-([A-Za-z]),\ )?--([a-z][a-z-]*)(\ ([^ ]+))? ]]; then
            names+=("${BASH_REMATCH[3]}")
            letters+=("${BASH_REMATCH[2]}")
            values+=("${BASH_REMATCH[5]}")
        fi
    done < <(_draftscope_ask "$@" ${method:+--method "$method"} --help)
}

# Sets `option` to the name and `value` to the placeholder of option word $1; fails when there is
# no such option.
_draftscope_find_option() {
    local i
    option='' value=''
    for i in "${!names[@]}"; do
        if [[ $1 == "--${names[i]}" || ( ${letters[i]} && $1 == "-${letters[i]}" ) ]]; then
            option=${names[i]} value=${values[i]}
            return 0
        fi
    done
    return 1
}

# The placeholder of argument $1 (from 0) in the usage line; the last one may repeat. After such a
# one, what follows "|" is another form of the command.
_draftscope_argument() {
    local word skip='' found=() many='' IFS=' '
    for word in $usage; do
        case $word in
        \|) [[ $many ]] && break ;;
        \[[A-Z]*...\]) word=${word#[} many=1 ; found+=("${word%...]}") ;;
        \[*\]... | \[*\]) ;;
        -* | \[-*) skip=1 ; continue ;;
        *) [[ $skip ]] || { found+=("${word%...}") ; [[ $word == *... ]] && many=1; } ;;
        esac
        skip=
    done
    if (( $1 < ${#found[@]} )); then
        printf '%s' "${found[$1]}"
    elif [[ $many ]]; then
        printf '%s' "${found[${#found[@]} - 1]}"
    fi
}

# Sets `method` to the one chosen among the words before this one, if there is such a method.
# --method=NAME comes as three words: readline breaks words at "=".
_draftscope_find_method() {
    local i name
    for (( i = start; i + 1 < COMP_CWORD; i++ )); do
        [[ ${COMP_WORDS[i]} == --method ]] || continue
        name=${COMP_WORDS[i + 1]}
        [[ $name == '=' ]] && (( i + 2 < COMP_CWORD )) && name=${COMP_WORDS[i + 2]}
        [[ $'\n'$(_draftscope_methods)$'\n' == *$'\n'"$name"$'\n'* ]] && method=$name
    done
}

_draftscope() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prefix='' method=''
    local i word start subcommands command='' usage='' option='' value='' arguments=0 ended=''
    local names=() letters=() values=() path=()
    COMPREPLY=()
    program=${program/#\~\//$HOME/}
    if (( COMP_CWORD == 1 )); then
        _draftscope_add -W "$(_draftscope_commands) --help --version"
        return 0
    fi
    command=${COMP_WORDS[1]} path=("$command") start=2
    [[ $command == [a-z]* ]] || return 0
    subcommands=$(_draftscope_commands "$command")
    if [[ $subcommands ]]; then
        if (( COMP_CWORD == 2 )); then
            _draftscope_add -W "$subcommands --help"
            return 0
        fi
        path+=("${COMP_WORDS[2]}") start=3
    fi
    _draftscope_find_method
    _draftscope_read_help "${path[@]}"
    [[ $usage ]] && usage=${usage#"${path[*]}"}
    # The words before this one: options with their values, and how many arguments.
    for (( i = start; i < COMP_CWORD; i++ )); do
        word=${COMP_WORDS[i]}
        if [[ -z $ended && $word == -- ]]; then
            ended=1
        elif [[ -z $ended && $word == -?* ]]; then
            _draftscope_find_option "$word" || continue
            [[ $value ]] || continue
            (( ++i ))
            if (( i == COMP_CWORD )); then # this word is the value, or the "=" before it
                [[ $cur == '=' ]] && cur=
                _draftscope_value "$value" "$option"
                return 0
            elif [[ ${COMP_WORDS[i]} == '=' ]] && (( ++i == COMP_CWORD )); then
                _draftscope_value "$value" "$option"
                return 0
            fi
        else
            (( ++arguments ))
        fi
    done
    if [[ -z $ended && $cur == -* ]]; then
        _draftscope_add -W "${names[*]/#/--}"
    else
        _draftscope_value "$(_draftscope_argument "$arguments")" ''
    fi
    return 0
}

complete -F _draftscope draftscope
