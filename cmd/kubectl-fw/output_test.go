package main

// inFormat is -o with this value, of a command that has a wide text or none.
func inFormat(format string, wide bool) *output {
	o := newOutput(wide)
	*o.flags.OutputFormat = format
	return o
}
