package pass

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/aggregate"
)

// stalled is a failure that only a person can end. Its message names field, value, backend and remedy (law 10).
type stalled struct {
	reason, message string
	// again is true when what must change may send no event.
	again bool
}

func (e *stalled) Error() string { return e.message }

func stall(reason, format string, args ...any) error {
	return &stalled{reason: reason, message: fmt.Sprintf(format, args...)}
}

// missing words that a backend that an order was for is not there.
func (d *Decision) missing(name string, err error) error {
	if errors.Is(err, backends.ErrNotConfigured) {
		return stall(v1alpha1.ReasonBackendNotFound,
			"spec.backend %q: no such backend; configured are: %s. Choose one of them, or add it to the operator's configuration",
			name, cmp.Or(strings.Join(d.in.Backends, ", "), "none"))
	}
	return err
}

// retry says how a pass that failed is tried again.
type retry int

const (
	// retryOnEvent waits for the FleetWorkload, or what its backend reports, to change.
	retryOnEvent retry = iota
	// retryLater also looks again after a while, since what must change may send no event.
	retryLater
	// retryWithBackoff returns the error to the queue.
	retryWithBackoff
)

// problemOf turns the error that ended a pass into what the status says of it, and when to try again.
func problemOf(err error, backend string) (*aggregate.Problem, retry) {
	if err == nil {
		return nil, retryOnEvent
	}
	var mine *stalled
	if errors.As(err, &mine) {
		next := retryOnEvent
		if mine.again {
			next = retryLater
		}
		return &aggregate.Problem{Reason: mine.reason, Message: mine.message, Stalled: true}, next
	}
	var theirs *backends.Error
	if !errors.As(err, &theirs) {
		return &aggregate.Problem{Reason: v1alpha1.ReasonInternalError, Message: err.Error()}, retryWithBackoff
	}
	reason, isStalled := reasonOf(theirs.Code)
	message := fmt.Sprintf("backend %q: %s", backend, theirs.Error())
	return &aggregate.Problem{Reason: reason, Message: message, Stalled: isStalled}, retryOf(theirs.Code)
}

// retryOf says when a refusal may end. One that follows from the spec, or from which clusters there are, ends with a change of these, and
// an event tells of it; all else is looked at again.
func retryOf(code backends.Code) retry {
	switch code {
	case backends.CodeInvalidTemplate, backends.CodeInvalidOverride, backends.CodeInvalidOptions, backends.CodeInvalidPlacement,
		backends.CodeUnsupported, backends.CodePlacementNotMet, backends.CodeClusterNotFound:
		return retryOnEvent
	default:
		return retryLater
	}
}

func reasonOf(code backends.Code) (reason string, isStalled bool) {
	switch code {
	case backends.CodeUnavailable:
		return v1alpha1.ReasonBackendUnavailable, false
	case backends.CodeNotReady:
		return v1alpha1.ReasonBackendNotReady, false
	case backends.CodeForbidden:
		return v1alpha1.ReasonBackendForbidden, true
	case backends.CodeRejected:
		return v1alpha1.ReasonBackendRejected, true
	case backends.CodeKindNotServed:
		return v1alpha1.ReasonKindNotServed, true
	case backends.CodeNameConflict:
		return v1alpha1.ReasonNameConflict, true
	case backends.CodeInvalidTemplate:
		return v1alpha1.ReasonInvalidTemplate, true
	case backends.CodeInvalidOverride:
		return v1alpha1.ReasonInvalidOverride, true
	case backends.CodeInvalidOptions:
		return v1alpha1.ReasonInvalidOptions, true
	case backends.CodeUnsupported:
		return v1alpha1.ReasonNotSupported, true
	case backends.CodeInvalidPlacement:
		return v1alpha1.ReasonInvalidPlacement, true
	case backends.CodeNoCapacity:
		return v1alpha1.ReasonInsufficientCapacity, true
	case backends.CodePlacementNotMet:
		return v1alpha1.ReasonPlacementNotMet, true
	case backends.CodeClusterNotFound:
		return v1alpha1.ReasonClusterNotFound, true
	default:
		return v1alpha1.ReasonInternalError, false
	}
}

// Note fits a message into an event's note, or an entry of the status, which API servers bound to 1 KiB.
func Note(message string) string {
	const most = 1000
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") // a character may have been cut in two
	}
	return message
}
