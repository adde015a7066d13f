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

// reasons are the conditions' for what drivers refuse.
var reasons = map[backends.Code]string{
	backends.CodeUnavailable:      v1alpha1.ReasonBackendUnavailable,
	backends.CodeNotReady:         v1alpha1.ReasonBackendNotReady,
	backends.CodeForbidden:        v1alpha1.ReasonBackendForbidden,
	backends.CodeRejected:         v1alpha1.ReasonBackendRejected,
	backends.CodeKindNotServed:    v1alpha1.ReasonKindNotServed,
	backends.CodeNameConflict:     v1alpha1.ReasonNameConflict,
	backends.CodeInvalidTemplate:  v1alpha1.ReasonInvalidTemplate,
	backends.CodeInvalidOverride:  v1alpha1.ReasonInvalidOverride,
	backends.CodeInvalidOptions:   v1alpha1.ReasonInvalidOptions,
	backends.CodeUnsupported:      v1alpha1.ReasonNotSupported,
	backends.CodeInvalidPlacement: v1alpha1.ReasonInvalidPlacement,
	backends.CodeNoCapacity:       v1alpha1.ReasonInsufficientCapacity,
	backends.CodePlacementNotMet:  v1alpha1.ReasonPlacementNotMet,
	backends.CodeClusterNotFound:  v1alpha1.ReasonClusterNotFound,
}

// reasonOf also tells whether a person has to act: what passes by itself needs nobody.
func reasonOf(code backends.Code) (reason string, isStalled bool) {
	reason, known := reasons[code]
	if !known {
		return v1alpha1.ReasonInternalError, false
	}
	return reason, code != backends.CodeUnavailable && code != backends.CodeNotReady
}
