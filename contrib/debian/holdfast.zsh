#compdef holdfast
# Completion of holdfast: the program itself answers, with the names of the array's objects.
# What is read here is for the next time; this time is asked for now.
source <(holdfast completion zsh)
_clap_dynamic_completer_holdfast "$@"
