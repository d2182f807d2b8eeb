holdfast completion fish | source
