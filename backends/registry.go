package backends

import "errors"

// ErrNotConfigured means that no backend of that name is configured.
var ErrNotConfigured = errors.New("backend is not configured")

// Registry finds connected drivers by the name of their backend.
type Registry interface {
	// Driver returns the driver of a backend. It fails with CodeUnavailable or CodeNotReady when the backend is
	// configured but cannot be used now, and with ErrNotConfigured when there is no such backend.
	Driver(name string) (Driver, error)
	// Names lists the configured backends, sorted.
	Names() []string
}
