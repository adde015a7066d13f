// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
)

const (
	kruiseNamespace = "kruise-system"
	argoNamespace   = "argo"
	agentNamespace  = "open-cluster-management-agent"
	workAgent       = "klusterlet-work-sa"

	regionLabel   = "topology.kubernetes.io/region"
	zoneLabel     = "topology.kubernetes.io/zone"
	providerLabel = "fleetworkload.io/provider"

	nodeCPU      = 64
	nodeMemoryGi = 256
)

// Member is one member cluster. Provider, Region, Zone and Labels are the same on Karmada and OCM.
type Member struct {
	Name string `json:"name"`
	// KarmadaName and OCMName are the names of its Cluster and its ManagedCluster.
	KarmadaName string            `json:"karmadaName"`
	OCMName     string            `json:"ocmName"`
	Provider    string            `json:"provider"`
	Region      string            `json:"region"`
	Zone        string            `json:"zone"`
	Labels      map[string]string `json:"labels"`
	// Pull says that an agent in the member carries Karmada's Works out, instead of Karmada's controllers.
	Pull bool `json:"pull,omitempty"`
	// Paused says that PauseMember stopped its API server.
	Paused bool `json:"paused,omitempty"`
}

// profiles are what members look like, in turn.
var profiles = []Member{
	{Provider: "aws", Region: "eu-west", Zone: "eu-west-1a", Labels: map[string]string{"env": "prod", "tier": "a"}},
	{Provider: "aws", Region: "eu-west", Zone: "eu-west-1b", Labels: map[string]string{"env": "prod", "tier": "b"}},
	{Provider: "gcp", Region: "us-east", Zone: "us-east-1a", Labels: map[string]string{"env": "staging", "tier": "a"}},
	{Provider: "gcp", Region: "us-east", Zone: "us-east-1b", Labels: map[string]string{"env": "prod", "tier": "b"}},
	{Provider: "azure", Region: "ap-south", Zone: "ap-south-1a", Labels: map[string]string{"env": "staging", "tier": "b"}},
}

// addMember enters a member unless it is there. The caller holds the state.
func (s *state) addMember(name string, pull bool) {
	for _, m := range s.Members {
		if m.Name == name {
			return
		}
	}
	m := profiles[len(s.Members)%len(profiles)]
	m.Name, m.KarmadaName, m.OCMName = name, name, name
	m.Labels, m.Pull = maps.Clone(m.Labels), pull
	if s.DifferentNames {
		m.OCMName = "ocm-" + name
	}
	s.Members = append(s.Members, m)
}

// nodeZones are the zones of the member's three nodes.
func (m Member) nodeZones() []string {
	other := m.Region + "-1c"
	return []string{m.Zone, m.Zone, other}
}

// memberUnits is one member: its own cluster with what joins it to OCM, and apart what joins it to Karmada, which may be stopped.
func (f *Fleet) memberUnits(m Member) (own, karmada []unit, err error) {
	tokens, err := f.memberTokens(m)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	cluster, err := f.memberClusterUnits(m)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	ocm, err := f.joinOCMUnits(m, tokens)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	karmada, err = f.joinKarmadaUnits(m, tokens)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return append(cluster, ocm...), karmada, nil
}

// memberClusterUnits is a member's control plane with OpenKruise and nodes.
func (f *Fleet) memberClusterUnits(m Member) ([]unit, error) {
	name := func(part string) string { return m.Name + "-" + part }
	units, err := collect(nil,
		func() (unit, error) {
			return f.apiServerUnit(apiServer{cluster: m.Name, tokens: f.path("members", m.Name, "tokens.csv")})
		},
		// All of its controllers. Those that need a cloud or a certificate authority find none and stay off.
		func() (unit, error) {
			return f.controllerManagerUnit(controllerManager{
				cluster: m.Name, controllers: "*",
				// Nodes have no kubelet that renews a lease, and a pause would make all of them unknown for a while.
				args: []string{"--node-monitor-grace-period=24h"},
			})
		})
	if err != nil {
		return nil, err
	}
	p, err := f.ports(name("kube-scheduler"), name("kruise-webhook"), name("kruise-health"), name("argo-health"))
	if err != nil {
		return nil, err
	}
	kubeconfig := f.Kubeconfig(m.Name)
	kruise := f.path("members", m.Name, "kruise")
	stages := f.path("members", m.Name, "kwok-stages.yaml")
	units = append(units,
		unit{
			name: name("manifests"), needs: []string{apiServerName(m.Name)},
			prepare: func(ctx context.Context) error { return f.prepareMember(ctx, m) },
		},
		unit{
			name: name("kube-scheduler"), needs: []string{apiServerName(m.Name)},
			command: f.command("kube-scheduler", "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig,
				"--authorization-kubeconfig="+kubeconfig, "--bind-address="+loopback,
				fmt.Sprintf("--secure-port=%d", p[name("kube-scheduler")]), "--leader-elect=false",
				"--tls-cert-file="+f.pki.file("serving.crt"), "--tls-private-key-file="+f.pki.file("serving.key")),
			ready: answers(httpsURL(p[name("kube-scheduler")], "/healthz")),
		},
		unit{
			name: name("kwok"), needs: []string{name("manifests")},
			prepare: func(ctx context.Context) error { return f.writeStages(ctx, stages) },
			// Without its server: nobody asks it, and its metrics write to a map which the controllers write to as well, so that now and then it
			// dies as it starts (RegisterType in github.com/wzshiming/easycel v0.6.0).
			command: f.command("kwok", "--kubeconfig="+kubeconfig, "--manage-all-nodes=true", "--config="+stages),
			ready:   func(ctx context.Context) error { return f.nodesReady(ctx, m) },
		},
		unit{
			name: name("kruise-manager"), needs: []string{name("manifests")},
			command: f.commandEnv("kruise-manager",
				// With a host the manager serves and registers its webhooks under that address, with files as certificates.
				[]string{
					"WEBHOOK_HOST=" + loopback, fmt.Sprintf("WEBHOOK_PORT=%d", p[name("kruise-webhook")]),
					"WEBHOOK_CERT_DIR=" + filepath.Join(kruise, "certs"), "POD_NAMESPACE=" + kruiseNamespace,
				},
				"--kubeconfig="+kubeconfig, "--enable-leader-election=false", "--metrics-addr=0", "--enable-pprof=false",
				"--health-probe-addr="+address(p[name("kruise-health")]), "--protection-log-path="+filepath.Join(kruise, "log"),
				"--rest-config-qps=200", "--rest-config-burst=400"),
			ready: func(ctx context.Context) error {
				if err := answers(httpURL(p[name("kruise-health")], "/readyz"))(ctx); err != nil {
					return err
				}
				return f.kruiseDefaults(ctx, m)
			},
		})
	if !f.state.WithoutWorkflows {
		units = append(units, f.workflowUnit(m, p[name("argo-health")]))
	}
	return units, nil
}

// workflowUnit is Argo's controller in a member.
func (f *Fleet) workflowUnit(m Member, health int) unit {
	return unit{
		name: m.Name + "-workflow-controller", needs: []string{m.Name + "-manifests"},
		command: f.commandEnv("workflow-controller",
			// A namespace that is made together with a workflow has no service account for a moment: without the pattern, the workflow
			// fails for good where a Job's controller tries again.
			[]string{
				"LEADER_ELECTION_DISABLE=true", "HEALTH_ADDRESS=" + address(health),
				`TRANSIENT_ERROR_PATTERN=serviceaccount "[^"]+" not found`,
			},
			"--kubeconfig="+f.Kubeconfig(m.Name), "--namespace="+argoNamespace, "--executor-image=argoexec", "--qps=200", "--burst=400"),
		ready: answers(httpURL(health, "/healthz")),
	}
}

// account is a service account in a member.
type account struct{ namespace, name string }

// users are those that come from outside, or would run in a pod.
func (m Member) users() []account {
	users := []account{{agentNamespace, workAgent}}
	if m.Pull {
		return append(users, account{karmadaNamespace, karmadaAgentAccount})
	}
	return append(users, account{karmadaClusterNamespace, "karmada-" + m.KarmadaName}, account{karmadaClusterNamespace, "karmada-impersonator"})
}

// memberTokens writes the token file of the member's API server and returns the tokens by service account.
func (f *Fleet) memberTokens(m Member) (map[string]string, error) {
	users := m.users()
	f.state.mu.Lock()
	tokens := maps.Clone(f.state.Tokens[m.Name])
	f.state.mu.Unlock()
	if tokens == nil {
		tokens = map[string]string{}
	}
	var lines strings.Builder
	for _, user := range users {
		t, err := serviceAccountToken(user.namespace, user.name)
		if err != nil {
			return nil, err
		}
		if known, ok := tokens[user.name]; ok {
			t.token = known
		}
		tokens[user.name] = t.token
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", t.token, t.user, user.name, strings.Join(t.groups, ","))
	}
	if err := f.state.update(func() { f.state.Tokens[m.Name] = tokens }); err != nil {
		return nil, err
	}
	return tokens, writeFile(f.path("members", m.Name, "tokens.csv"), []byte(lines.String()))
}

// prepareMember installs what a cluster administrator would: OpenKruise's manifests, Argo's, the klusterlet's, nodes.
func (f *Fleet) prepareMember(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	namespaces := []object{
		namespaceObject(kruiseNamespace), namespaceObject("kruise-daemon-config"),
		namespaceObject(agentNamespace), namespaceObject(karmadaClusterNamespace), namespaceObject(argoNamespace),
	}
	if err := c.ensureMaps(ctx, namespaces...); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *client) error{f.installKruise, f.installArgo, f.installKlusterlet} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	if err := f.letKarmadaIn(ctx, c, m); err != nil {
		return err
	}
	for i, zone := range m.nodeZones() {
		if err := c.ensureMaps(ctx, node(fmt.Sprintf("%s-node%d", m.Name, i+1), m.Region, zone)); err != nil {
			return err
		}
	}
	return nil
}
