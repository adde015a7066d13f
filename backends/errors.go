package backends

import (
	"errors"
	"fmt"
	"strings"
)

// Code classifies an expected failure.
type Code string

const (
	// CodeUnavailable means that the backend cannot be reached. It passes by itself.
	CodeUnavailable Code = "Unavailable"
	// CodeNotReady means that the backend was reached but lacks its CRDs, or that caches are not filled. It passes.
	CodeNotReady Code = "NotReady"
	// CodeForbidden means that the operator's credentials lack a right.
	CodeForbidden Code = "Forbidden"
	// CodeRejected means that the backend's API server refuses an object as invalid.
	CodeRejected Code = "Rejected"
	// CodeKindNotServed means that the backend does not serve the template's kind.
	CodeKindNotServed Code = "KindNotServed"
	// CodeNameConflict means that an object of that name is not this workload's.
	CodeNameConflict Code = "NameConflict"
	// CodeInvalidTemplate means that the template cannot be sent.
	CodeInvalidTemplate Code = "InvalidTemplate"
	// CodeInvalidOverride means that an override cannot be applied to the template.
	CodeInvalidOverride Code = "InvalidOverride"
	// CodeInvalidPlacement means that the placement contradicts itself or leaves nothing to place on.
	CodeInvalidPlacement Code = "InvalidPlacement"
	// CodePlacementNotMet means that the clusters there are cannot meet what the placement asks for.
	CodePlacementNotMet Code = "PlacementNotMet"
	// CodeNoCapacity means that the chosen clusters have no room for the replicas, or that it is not known.
	CodeNoCapacity Code = "NoCapacity"
	// CodeInvalidOptions means that backendOptions cannot be merged.
	CodeInvalidOptions Code = "InvalidOptions"
	// CodeUnsupported means that the backend cannot do what the spec asks.
	CodeUnsupported Code = "Unsupported"
	// CodeClusterNotFound means that the placement names a cluster that the backend does not know.
	CodeClusterNotFound Code = "ClusterNotFound"
)

// Error is an expected failure, worded for the person who wrote the FleetWorkload (law 10): what is wrong with which
// field and value, and what to do about it. The controller adds the backend's name.
type Error struct {
	Code Code
	// Field is the path in the FleetWorkload, such as spec.template.kind; empty when no field is to blame.
	Field string
	// Value is the offending value, shortened; empty when there is none.
	Value string
	// Message says what is wrong.
	Message string
	// Remedy says what to do about it.
	Remedy string
	// Filling is true when a backend answers, and its objects are being read for the first time: a hundred thousand take minutes.
	Filling bool
	// Err is the cause; it may be nil.
	Err error
}

// Error returns the whole message on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Field != "" {
		b.WriteString(e.Field)
		if e.Value != "" {
			fmt.Fprintf(&b, " %q", e.Value)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Remedy != "" {
		fmt.Fprintf(&b, "; %s", e.Remedy)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Filling tells whether an error is only that a backend's objects are being read for the first time.
func Filling(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Filling
}

// CodeOf returns the code of the first *Error in err's chain, or "" when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
