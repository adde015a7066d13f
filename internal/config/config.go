// Package config is the operator's configuration file.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/plan"
	"github.com/fleetworkload/fleetworkload/internal/tenancy"
)

// APIVersion and Kind stand at the head of a configuration file.
const (
	APIVersion = "config.fleetworkload.io/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// Type is a kind of backend.
type Type string

const (
	// TypeKarmada is a Karmada control plane.
	TypeKarmada Type = "Karmada"
	// TypeOCM is an Open Cluster Management hub.
	TypeOCM Type = "OCM"
)

// Configuration is the operator's configuration file.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Installation names this installation of the operator: a DNS subdomain. What backends carry out is marked with it, and what another
	// installation has made is somebody else's. A management cluster that was rebuilt has the name of the one before. It does not change
	// otherwise. When absent: the UID of the management cluster's namespace kube-system, which is another one after a rebuild.
	Installation string `json:"installation,omitempty"`
	// Backends are the control planes that carry workloads out. FleetWorkloads choose one by name.
	Backends []Backend `json:"backends"`
	// Guards hold back what looks like a mistake.
	Guards Guards `json:"guards,omitempty"`
	// Kinds describe workload kinds that are not built in.
	Kinds []interpreter.Description `json:"kinds,omitempty"`
	// AllowedKinds are namespaced kinds that FleetWorkloads may carry although they are neither built in nor described:
	// they are shipped, and their health is what kstatus derives.
	AllowedKinds []tenancy.Kind `json:"allowedKinds,omitempty"`
	// Dependencies say what of what pods refer to is sent along.
	Dependencies Dependencies `json:"dependencies,omitempty"`
	// ClusterAliases are the names of clusters that backends call differently: of each such cluster, its name by backend.
	// Clusters whose kube-system UID both backends know need none.
	ClusterAliases plan.Aliases `json:"clusterAliases,omitempty"`
	// Migrations bound the hand-overs between backends.
	Migrations Migrations `json:"migrations,omitempty"`
	// Tenancy says what the FleetWorkloads of a namespace may use.
	Tenancy tenancy.Tenancy `json:"tenancy,omitempty"`
	// Tracing says where spans of passes are sent. When absent nothing is traced.
	Tracing Tracing `json:"tracing,omitempty"`
}

// Migrations bound the hand-overs between backends.
type Migrations struct {
	// AtOnce is how many FleetWorkloads may be handed over at the same time, 1 or more; others wait for their turn. When
	// absent: 10.
	AtOnce *int32 `json:"atOnce,omitempty"`
}

// Limit returns AtOnce or its default.
func (m Migrations) Limit() int {
	if m.AtOnce == nil {
		return 10
	}
	return int(*m.AtOnce)
}

// Tracing says where spans of passes are sent, with the fields of Kubernetes' TracingConfiguration.
type Tracing struct {
	// Endpoint is the collector's address, host:port, where it takes OTLP over gRPC without TLS.
	Endpoint string `json:"endpoint,omitempty"`
	// SamplingRatePerMillion is how many passes of a million are traced, from 0 to 1000000.
	SamplingRatePerMillion *int32 `json:"samplingRatePerMillion,omitempty"`
}

// Rate returns SamplingRatePerMillion; 0 when it is absent.
func (t Tracing) Rate() int32 {
	if t.SamplingRatePerMillion == nil {
		return 0
	}
	return *t.SamplingRatePerMillion
}

// everyPass is the rate that traces all passes.
const everyPass = 1_000_000

// validate wants both fields or none: one alone would trace nothing, in silence.
func (t Tracing) validate() error {
	switch rate := t.SamplingRatePerMillion; {
	case t.Endpoint == "" && rate == nil:
		return nil
	case !isHostPort(t.Endpoint):
		return fmt.Errorf("tracing.endpoint: %q is not host:port; name the address where the collector takes OTLP over gRPC without TLS, "+
			"such as otel-collector.observability:4317", t.Endpoint)
	case rate == nil:
		return fmt.Errorf("tracing.samplingRatePerMillion: required with an endpoint; set how many passes of a million are traced, such as 10000; "+
			"%d traces all", everyPass)
	case *rate < 0 || *rate > everyPass:
		return fmt.Errorf("tracing.samplingRatePerMillion: %d is not from 0 to %d; %d traces all passes, 0 none", *rate, everyPass, everyPass)
	default:
		return nil
	}
}

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	number, err := strconv.Atoi(port)
	if err != nil || len(validation.IsValidPortNum(number)) > 0 {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil || len(validation.IsDNS1123Subdomain(host)) == 0
}

// Dependencies say what of what pods refer to is sent along with spec.dependencies: Propagate.
type Dependencies struct {
	// LeaveOut are kinds that the operator neither reads nor sends: ConfigMap, Secret, ServiceAccount,
	// PersistentVolumeClaim. What pods refer to of these kinds is expected on the clusters.
	LeaveOut []string `json:"leaveOut,omitempty"`
}

// Registry returns what is known about workload kinds, and which of them may be carried.
func (c Configuration) Registry() (*interpreter.Registry, error) {
	kinds, err := interpreter.New(c.Kinds...)
	if err != nil {
		return nil, err
	}
	allowed := make([]schema.GroupKind, 0, len(c.AllowedKinds))
	for _, kind := range c.AllowedKinds {
		allowed = append(allowed, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	}
	return kinds.Allowing(allowed...), nil
}

// Backend is one named control plane.
type Backend struct {
	// Name by which spec.backend refers to it: a DNS label.
	Name string `json:"name"`
	// Type is Karmada or OCM.
	Type Type `json:"type"`
	// Connection says how to reach it.
	Connection Connection `json:"connection"`
	// OCM is for backends of type OCM only.
	OCM *OCM `json:"ocm,omitempty"`
	// Karmada is for backends of type Karmada only.
	Karmada *Karmada `json:"karmada,omitempty"`
}

// Connection is where a backend's kubeconfig comes from; exactly one is set.
type Connection struct {
	// KubeconfigFile is a path. The file is read again when it changes.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// SecretRef names a Secret in the operator's namespace. It is read again when it changes.
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// InCluster uses the operator's own ServiceAccount: the backend is the management cluster.
	InCluster *struct{} `json:"inCluster,omitempty"`
}

// SecretRef names one key of a Secret.
type SecretRef struct {
	Name string `json:"name"`
	// Key within the Secret. When absent: kubeconfig.
	Key string `json:"key,omitempty"`
}

// Karmada is what only Karmada knows.
type Karmada struct {
	// Interpreters says which ResourceInterpreterCustomizations the operator keeps on the control plane, for kinds that
	// FleetWorkloads use: Managed, Missing or None. When absent: Managed.
	Interpreters InterpreterMode `json:"interpreters,omitempty"`
	// PodEvidence has migrations count restarts of pods in members, through Karmada's proxy to them. The operator needs the
	// right to get clusters/proxy on Karmada, and to list pods in the members.
	PodEvidence bool `json:"podEvidence,omitempty"`
}

// InterpreterMode says how far the operator teaches Karmada what it knows of workload kinds.
type InterpreterMode string

const (
	// InterpretersManaged replaces Karmada's own interpreters wherever the operator's say more, or are right where
	// Karmada's are wrong.
	InterpretersManaged InterpreterMode = "Managed"
	// InterpretersMissing adds only what Karmada has no interpreter for.
	InterpretersMissing InterpreterMode = "Missing"
	// InterpretersNone adds nothing.
	InterpretersNone InterpreterMode = "None"
)

// OCM is what only Open Cluster Management knows.
type OCM struct {
	// ClusterSets are bound by the operator in the namespaces it uses. When empty, only bindings that exist count.
	ClusterSets []string `json:"clusterSets,omitempty"`
	// Attributes say where Provider, Region and Zone of a cluster are found.
	Attributes map[string]AttributeSource `json:"attributes,omitempty"`
	// ShipDefinitions sends a kind's CRD, as the hub has it, to chosen clusters that lack it: once, and never changed or
	// removed afterwards.
	ShipDefinitions bool `json:"shipDefinitions,omitempty"`
}

// AttributeSource is where an attribute is found: the claim first, then the label.
type AttributeSource struct {
	Claim string `json:"claim,omitempty"`
	Label string `json:"label,omitempty"`
}

// Guards hold back what looks like a mistake (law 2).
type Guards struct {
	// MaxRemovalPercent is the share of running replicas that may go away at once without a change of the spec, from 0
	// to 100. When absent: 50.
	MaxRemovalPercent *int32 `json:"maxRemovalPercent,omitempty"`
}

// RemovalPercent returns MaxRemovalPercent or its default.
func (g Guards) RemovalPercent() int32 {
	if g.MaxRemovalPercent == nil {
		return 50
	}
	return *g.MaxRemovalPercent
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Load reads and checks a configuration file. The error names every field that is wrong.
func Load(path string) (Configuration, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Configuration{}, fmt.Errorf("read operator configuration: %w", err)
	}
	c, err := Parse(raw)
	if err != nil {
		return Configuration{}, fmt.Errorf("operator configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads and checks a configuration. Fields it does not know are errors.
func Parse(raw []byte) (Configuration, error) {
	var c Configuration
	if err := yaml.UnmarshalStrict(raw, &c); err != nil {
		return c, err
	}
	return c, c.validate()
}

func (c Configuration) validate() error {
	var errs []error
	if c.APIVersion != APIVersion || c.Kind != Kind {
		errs = append(errs, fmt.Errorf("apiVersion and kind must be %s and %s", APIVersion, Kind))
	}
	if c.Installation != "" {
		for _, problem := range validation.IsDNS1123Subdomain(c.Installation) {
			errs = append(errs, fmt.Errorf("installation: %q: %s", c.Installation, problem))
		}
	}
	if p := c.Guards.RemovalPercent(); p < 0 || p > 100 {
		errs = append(errs, fmt.Errorf("guards.maxRemovalPercent: %d is not from 0 to 100", p))
	}
	if c.Migrations.Limit() < 1 {
		errs = append(errs, fmt.Errorf("migrations.atOnce: %d is not 1 or more", c.Migrations.Limit()))
	}
	if _, err := interpreter.New(c.Kinds...); err != nil {
		errs = append(errs, err)
	}
	for i, kind := range c.AllowedKinds {
		errs = append(errs, checkAllowed(kind, fmt.Sprintf("allowedKinds[%d]", i))...)
	}
	for i, kind := range c.Dependencies.LeaveOut {
		if !slices.Contains(dependencyKinds, kind) {
			errs = append(errs, fmt.Errorf("dependencies.leaveOut[%d]: %q is none of %s", i, kind, strings.Join(dependencyKinds, ", ")))
		}
	}
	seen := map[string]bool{}
	for i, b := range c.Backends {
		at := fmt.Sprintf("backends[%d]", i)
		if !dnsLabel.MatchString(b.Name) {
			errs = append(errs, fmt.Errorf("%s.name: %q is not a DNS label", at, b.Name))
		}
		if seen[b.Name] {
			errs = append(errs, fmt.Errorf("%s.name: %q is there twice", at, b.Name))
		}
		seen[b.Name] = true
		errs = append(errs, b.validate(at)...)
	}
	errs = append(errs, c.Tracing.validate())
	errs = append(errs, c.Tenancy.Check("tenancy", slices.Sorted(maps.Keys(seen)))...)
	return errors.Join(append(errs, c.checkAliases(seen))...)
}

// checkAliases refuses aliases for backends that there are not, and names that stand for two clusters.
func (c Configuration) checkAliases(backends map[string]bool) error {
	for i, entry := range c.ClusterAliases {
		for _, name := range slices.Sorted(maps.Keys(entry)) {
			if !backends[name] {
				return fmt.Errorf("clusterAliases[%d]: %q is none of the backends", i, name)
			}
		}
	}
	return c.ClusterAliases.Check("clusterAliases")
}

// dependencyKinds are those that pods refer to.
var dependencyKinds = []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"}

// powerful groups decide what others may do. Kinds of them travel only when they are named one by one.
var powerful = []string{"", "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"}

func checkAllowed(k tenancy.Kind, at string) []error {
	switch {
	case k.Kind == "":
		return []error{fmt.Errorf("%s.kind: required; * stands for every kind of the group", at)}
	case k.Kind == interpreter.AnyKind && slices.Contains(powerful, k.Group):
		return []error{fmt.Errorf("%s.kind: * is not possible for group %q: name the kinds one by one", at, k.Group)}
	default:
		return nil
	}
}

func (b Backend) validate(at string) []error {
	var errs []error
	if b.Type != TypeKarmada && b.Type != TypeOCM {
		errs = append(errs, fmt.Errorf("%s.type: %q is neither %s nor %s", at, b.Type, TypeKarmada, TypeOCM))
	}
	if b.OCM != nil && b.Type != TypeOCM {
		errs = append(errs, fmt.Errorf("%s.ocm: only for type %s", at, TypeOCM))
	}
	if b.Karmada != nil {
		if b.Type != TypeKarmada {
			errs = append(errs, fmt.Errorf("%s.karmada: only for type %s", at, TypeKarmada))
		}
		switch b.Karmada.Interpreters {
		case "", InterpretersManaged, InterpretersMissing, InterpretersNone:
		default:
			errs = append(errs, fmt.Errorf("%s.karmada.interpreters: %q is none of %s, %s, %s", at, b.Karmada.Interpreters,
				InterpretersManaged, InterpretersMissing, InterpretersNone))
		}
	}
	sources := 0
	for _, set := range []bool{b.Connection.KubeconfigFile != "", b.Connection.SecretRef != nil, b.Connection.InCluster != nil} {
		if set {
			sources++
		}
	}
	if sources != 1 {
		errs = append(errs, fmt.Errorf("%s.connection: set exactly one of kubeconfigFile, secretRef and inCluster", at))
	}
	if ref := b.Connection.SecretRef; ref != nil && ref.Name == "" {
		errs = append(errs, fmt.Errorf("%s.connection.secretRef.name: required", at))
	}
	if b.OCM != nil {
		for key := range b.OCM.Attributes {
			if key != "Provider" && key != "Region" && key != "Zone" {
				errs = append(errs, fmt.Errorf("%s.ocm.attributes: %q is none of Provider, Region, Zone", at, key))
			}
		}
	}
	return errs
}
