// Package drivers is the one list of drivers. Only commands import it.
package drivers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/backends/karmada"
	karmadaretire "github.com/fleetworkload/fleetworkload/backends/karmada/retire"
	"github.com/fleetworkload/fleetworkload/backends/ocm"
	ocmretire "github.com/fleetworkload/fleetworkload/backends/ocm/retire"
	"github.com/fleetworkload/fleetworkload/internal/config"
	"github.com/fleetworkload/fleetworkload/internal/connection"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/interpreter/lua"
)

// Factories builds a driver for each type of backend that a configuration may name. kinds are those that FleetWorkloads
// may carry.
func Factories(kinds *interpreter.Registry) map[config.Type]connection.Factory {
	return map[config.Type]connection.Factory{
		config.TypeKarmada: func(cfg *rest.Config, b config.Backend) (backends.Driver, error) {
			return karmada.New(cfg, KarmadaOptions(b.Karmada, kinds))
		},
		config.TypeOCM: func(cfg *rest.Config, b config.Backend) (backends.Driver, error) {
			return ocm.New(cfg, OCMOptions(b.OCM))
		},
	}
}

// Retirer looks through the backend of a type that cfg leads to, which is to be switched off.
func Retirer(cfg *rest.Config, kind config.Type) (backends.Retirer, error) {
	if kind == config.TypeKarmada {
		return karmadaretire.New(cfg)
	}
	return ocmretire.New(cfg)
}

// Needs are the kinds that the driver of a backend reads and writes, in the versions in which it does. A control plane that serves all of them
// is new enough.
func Needs(b config.Backend) []schema.GroupVersionKind {
	if b.Type == config.TypeOCM {
		return ocm.Needs()
	}
	needs := karmada.Needs()
	if b.Karmada != nil && b.Karmada.Interpreters == config.InterpretersNone {
		needs = slices.DeleteFunc(needs, func(kind schema.GroupVersionKind) bool { return kind.Group == "config.karmada.io" })
	}
	return needs
}

// KarmadaOptions are the driver's options from the configuration's; nil means the defaults.
func KarmadaOptions(c *config.Karmada, kinds *interpreter.Registry) karmada.Options {
	if c == nil {
		c = &config.Karmada{}
	}
	options := karmada.Options{PodEvidence: c.PodEvidence}
	if c.Interpreters == config.InterpretersNone {
		return options
	}
	options.Interpreter = func(gvk schema.GroupVersionKind) (karmada.Interpreter, error) {
		kind := kinds.For(gvk)
		scripts, err := lua.Generate(kind)
		i := karmada.Interpreter{GVK: gvk, Resource: kind.Resource, Scripts: scripts}
		if c.Interpreters == config.InterpretersMissing {
			i = karmada.Missing(i)
		}
		return i, err
	}
	return options
}

// OCMOptions are the driver's options from the configuration's; nil means the defaults.
func OCMOptions(c *config.OCM) ocm.Options {
	if c == nil {
		return ocm.Options{}
	}
	options := ocm.Options{
		ClusterSets: c.ClusterSets, Attributes: map[v1alpha1.Attribute]ocm.AttributeSource{}, ShipDefinitions: c.ShipDefinitions,
	}
	for key, source := range c.Attributes {
		options.Attributes[v1alpha1.Attribute(key)] = ocm.AttributeSource{Claim: source.Claim, Label: source.Label}
	}
	return options
}
