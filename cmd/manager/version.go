package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the tag of the commit that this was built from, or else its time and hash, with what has built it. Go puts it into the binary.
func version() string {
	of := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		of = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", of, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
