#compdef holdfast
# Completion of holdfast by the program itself, including the names of the array's objects.
# The sourced script registers the function for later completions; this one is computed now.
source <(holdfast completion zsh)
_clap_dynamic_completer_holdfast "$@"
