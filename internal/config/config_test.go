package config

import (
	"strings"
	"testing"
)

const head = "apiVersion: config.fleetworkload.io/v1alpha1\nkind: OperatorConfiguration\n"

func TestParse(t *testing.T) {
	const both = "backends: [{name: a, type: OCM, connection: {inCluster: {}}}, {name: b, type: OCM, connection: {inCluster: {}}}]\n"
	tests := map[string]struct{ text, fails string }{
		"two backends": {head + `
backends:
- {name: karmada, type: Karmada, connection: {secretRef: {name: karmada}}}
- {name: ocm, type: OCM, connection: {inCluster: {}}, ocm: {clusterSets: [global], attributes: {Region: {label: region}}}}
guards: {maxRemovalPercent: 0}`, ""},
		"no backends yet":                {head, ""},
		"a field nobody knows":           {head + "backend: []", `unknown field "backend"`},
		"another kind":                   {"apiVersion: v1\nkind: ConfigMap", "apiVersion and kind must be"},
		"a name that is no label":        {head + "backends: [{name: A, type: OCM, connection: {inCluster: {}}}]", `backends[0].name: "A" is not a DNS label`},
		"the same name twice":            {head + "backends: [{name: a, type: OCM, connection: {inCluster: {}}}, {name: a, type: OCM, connection: {inCluster: {}}}]", `backends[1].name: "a" is there twice`},
		"a type nobody knows":            {head + "backends: [{name: a, type: KubeFed, connection: {inCluster: {}}}]", `backends[0].type: "KubeFed"`},
		"no connection":                  {head + "backends: [{name: a, type: OCM, connection: {}}]", "backends[0].connection: set exactly one"},
		"two connections":                {head + "backends: [{name: a, type: OCM, connection: {inCluster: {}, kubeconfigFile: x}}]", "backends[0].connection: set exactly one"},
		"a Secret without a name":        {head + "backends: [{name: a, type: OCM, connection: {secretRef: {}}}]", "backends[0].connection.secretRef.name: required"},
		"OCM options for Karmada":        {head + "backends: [{name: a, type: Karmada, connection: {inCluster: {}}, ocm: {}}]", "backends[0].ocm: only for type OCM"},
		"an attribute nobody knows":      {head + "backends: [{name: a, type: OCM, connection: {inCluster: {}}, ocm: {attributes: {rack: {}}}}]", `"rack" is none of`},
		"kinds that are allowed":         {head + "allowedKinds: [{group: example.io, kind: \"*\"}, {kind: ConfigMap}]", ""},
		"an allowed kind of no kind":     {head + "allowedKinds: [{group: example.io}]", "allowedKinds[0].kind: required"},
		"every kind of a powerful group": {head + "allowedKinds: [{group: rbac.authorization.k8s.io, kind: \"*\"}]", "allowedKinds[0].kind: * is not possible"},
		"interpreters of a mode":         {head + "backends: [{name: a, type: Karmada, connection: {inCluster: {}}, karmada: {interpreters: Missing}}]", ""},
		"interpreters of no mode":        {head + "backends: [{name: a, type: Karmada, connection: {inCluster: {}}, karmada: {interpreters: Some}}]", `backends[0].karmada.interpreters: "Some"`},
		"Karmada options for OCM":        {head + "backends: [{name: a, type: OCM, connection: {inCluster: {}}, karmada: {}}]", "backends[0].karmada: only for type Karmada"},
		"aliases":                        {head + both + "clusterAliases: [{a: m1, b: one}]", ""},
		"an alias on no backend":         {head + both + "clusterAliases: [{a: m1, c: one}]", `clusterAliases[0]: "c" is none of the backends`},
		"an alias of two clusters":       {head + both + "clusterAliases: [{a: m1, b: m2}, {a: m2, b: m3}]", `clusterAliases[1].a: the name "m2"`},
		"no migration at all":            {head + "migrations: {atOnce: 0}", "migrations.atOnce: 0"},
		"tenancy":                        {head + both + "tenancy: {rules: [{name: x, namespaceSelector: {matchLabels: {team: x}}, backends: [a]}]}", ""},
		"tenancy of no backend":          {head + both + "tenancy: {rules: [{name: x, backends: [c]}]}", `tenancy.rules[0].backends[0]: "c"`},
		"a guard out of range":           {head + "guards: {maxRemovalPercent: 101}", "guards.maxRemovalPercent: 101"},
		"traces":                         {head + "tracing: {endpoint: otel-collector.observability:4317, samplingRatePerMillion: 0}", ""},
		"traces to an IPv6 address":      {head + "tracing: {endpoint: \"[::1]:4317\", samplingRatePerMillion: 1000000}", ""},
		"no traces":                      {head + "tracing: {}", ""},
		"traces to a URL":                {head + "tracing: {endpoint: \"http://otel:4317\", samplingRatePerMillion: 1}", `tracing.endpoint: "http://otel:4317" is not host:port`},
		"traces to no port":              {head + "tracing: {endpoint: otel, samplingRatePerMillion: 1}", `tracing.endpoint: "otel" is not host:port`},
		"traces to port 0":               {head + "tracing: {endpoint: \"otel:0\", samplingRatePerMillion: 1}", `tracing.endpoint: "otel:0" is not host:port`},
		"traces to no host":              {head + "tracing: {endpoint: \":4317\", samplingRatePerMillion: 1}", `tracing.endpoint: ":4317" is not host:port`},
		"traces to nowhere":              {head + "tracing: {samplingRatePerMillion: 1}", `tracing.endpoint: "" is not host:port; name the address`},
		"traces of how many":             {head + "tracing: {endpoint: \"otel:4317\"}", "tracing.samplingRatePerMillion: required with an endpoint; set"},
		"traces of more than all":        {head + "tracing: {endpoint: \"otel:4317\", samplingRatePerMillion: 1000001}", "tracing.samplingRatePerMillion: 1000001 is not from 0 to 1000000; 1000000 traces all"},
		"traces of less than none":       {head + "tracing: {endpoint: \"otel:4317\", samplingRatePerMillion: -1}", "tracing.samplingRatePerMillion: -1 is not"},
		"an installation":                {head + both + "installation: prod.example.com", ""},
		"an installation of no name":     {head + both + "installation: Prod", `installation: "Prod"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(test.text))
			switch {
			case test.fails == "" && err != nil:
				t.Error(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("got %v, want %s", err, test.fails)
			case name == "two backends" && (len(c.Backends) != 2 || c.Guards.RemovalPercent() != 0):
				t.Errorf("got %+v", c)
			}
		})
	}
}
