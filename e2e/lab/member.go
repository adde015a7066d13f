// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	kruiseNamespace = "kruise-system"
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
func (s *state) addMember(name string) {
	for _, m := range s.Members {
		if m.Name == name {
			return
		}
	}
	m := profiles[len(s.Members)%len(profiles)]
	m.Name, m.KarmadaName, m.OCMName = name, name, name
	m.Labels = maps.Clone(m.Labels)
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

// memberUnits is one member: its own control plane, OpenKruise, nodes, and what joins it to Karmada and OCM.
func (f *Fleet) memberUnits(m Member) ([]unit, error) {
	name := func(part string) string { return m.Name + "-" + part }
	tokens, err := f.memberTokens(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
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
	p, err := f.ports(name("kube-scheduler"), name("kwok"), name("kruise-webhook"), name("kruise-health"), name("work-agent"),
		apiServerName(m.Name))
	if err != nil {
		return nil, err
	}
	kubeconfig := f.Kubeconfig(m.Name)
	kruise := f.path("members", m.Name, "kruise")
	stages := f.path("members", m.Name, "kwok-stages.yaml")
	return append(units,
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
			command: f.command("kwok", "--kubeconfig="+kubeconfig, "--manage-all-nodes=true",
				"--config="+stages, "--server-address="+address(p[name("kwok")])),
			ready: func(ctx context.Context) error { return f.nodesReady(ctx, m) },
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
		},
		unit{
			name: name("managedcluster"), needs: []string{"ocm-registration", "hub-manifests"},
			prepare: func(ctx context.Context) error { return f.registerOCM(ctx, m) },
			ready:   func(ctx context.Context) error { return f.agentAllowed(ctx, m) },
		},
		unit{
			name: name("work-agent"), needs: []string{name("manifests"), name("managedcluster")},
			prepare: func(context.Context) error {
				return f.writeAgentKubeconfigs(m, tokens[workAgent], p[apiServerName(m.Name)])
			},
			command: f.command("ocm-work", append([]string{"agent"}, append(
				ocmArgs(f.path("members", m.Name, "work-agent.kubeconfig"), agentNamespace, p[name("work-agent")]),
				"--spoke-cluster-name="+m.OCMName, "--agent-id="+m.OCMName, "--workload-source-driver=kube",
				"--workload-source-config="+f.path("members", m.Name, "work-agent-hub.kubeconfig"),
				"--status-sync-interval=2s")...)...),
			ready: answers(httpsURL(p[name("work-agent")], "/healthz")),
		},
		unit{
			name: name("ocm-available"), needs: []string{"ocm-heartbeat", name("work-agent")},
			ready: func(ctx context.Context) error { return f.ocmAvailable(ctx, m) },
		},
		unit{
			// After OpenKruise's manager: Karmada lists the kinds of a member every few seconds only.
			name: name("karmada-ready"), needs: []string{"karmada-controller-manager", name("kruise-manager")},
			prepare: func(ctx context.Context) error {
				return f.joinKarmada(ctx, m, tokens, httpsURL(p[apiServerName(m.Name)], ""))
			},
			ready: func(ctx context.Context) error { return f.karmadaReady(ctx, m) },
		}), nil
}

// memberTokens writes the token file of the member's API server and returns the tokens by service account.
func (f *Fleet) memberTokens(m Member) (map[string]string, error) {
	users := []struct{ namespace, name string }{
		{karmadaClusterNamespace, "karmada-" + m.KarmadaName},
		{karmadaClusterNamespace, "karmada-impersonator"},
		{agentNamespace, workAgent},
	}
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

// prepareMember installs what a cluster administrator would: OpenKruise's manifests, the klusterlet's, nodes.
func (f *Fleet) prepareMember(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	namespaces := []object{
		namespaceObject(kruiseNamespace), namespaceObject("kruise-daemon-config"),
		namespaceObject(agentNamespace), namespaceObject(karmadaClusterNamespace),
	}
	if err := c.ensureMaps(ctx, namespaces...); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *client) error{f.installKruise, f.installKlusterlet} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	if err := c.ensureMaps(ctx, karmadaAccess(m)...); err != nil {
		return err
	}
	for i, zone := range m.nodeZones() {
		if err := c.ensureMaps(ctx, node(fmt.Sprintf("%s-node%d", m.Name, i+1), m.Region, zone)); err != nil {
			return err
		}
	}
	return nil
}

// kruiseCRDs are OpenKruise's CRDs without conversion webhooks.
func (f *Fleet) kruiseCRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir, err := f.builder.moduleDir(ctx, "kruise", kruiseModule)
	if err != nil {
		return nil, err
	}
	return loadObjects(filepath.Join(dir, "config/crd/bases/*.yaml"), nil)
}

// installKruise creates OpenKruise's CRDs and webhook configurations. The manager wants to find all of them and puts
// its own address and certificate in.
func (f *Fleet) installKruise(ctx context.Context, c *client) error {
	crds, err := f.kruiseCRDs(ctx)
	if err != nil {
		return err
	}
	dir, err := f.builder.moduleDir(ctx, "kruise", kruiseModule)
	if err != nil {
		return err
	}
	patches, err := loadObjects(filepath.Join(dir, "config/crd/patches/webhook_in_statefulsets.yaml"), nil)
	if err != nil {
		return err
	}
	for _, patch := range patches {
		for _, crd := range crds {
			if crd.GetName() == patch.GetName() {
				conversion, _, _ := unstructured.NestedMap(patch.Object, "spec", "conversion")
				if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
					return err
				}
			}
		}
	}
	if err := c.ensureCRDs(ctx, crds); err != nil {
		return err
	}
	webhooks, err := loadObjects(filepath.Join(dir, "config/webhook/manifests.yaml"), nil)
	if err != nil {
		return err
	}
	selectors, err := loadObjects(filepath.Join(dir, "config/webhook/patch_manifests.yaml"), nil)
	if err != nil {
		return err
	}
	for i := range webhooks {
		if err := mergeWebhooks(webhooks[i], selectors); err != nil {
			return err
		}
		webhooks[i].SetName("kruise-" + webhooks[i].GetName())
	}
	return c.ensure(ctx, webhooks...)
}

// mergeWebhooks adds the selectors that OpenKruise's kustomization adds: without them every deletion of a Namespace,
// Deployment or CRD would call the manager.
func mergeWebhooks(config *unstructured.Unstructured, patches []*unstructured.Unstructured) error {
	hooks, _, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, patch := range patches {
		if patch.GetKind() != config.GetKind() {
			continue
		}
		changes, _, _ := unstructured.NestedSlice(patch.Object, "webhooks")
		for _, change := range changes {
			for _, hook := range hooks {
				if hook.(object)["name"] == change.(object)["name"] {
					maps.Copy(hook.(object), change.(object))
				}
			}
		}
	}
	return unstructured.SetNestedSlice(config.Object, hooks, "webhooks")
}

// installKlusterlet creates what the klusterlet's operator would for the work agent: the agent may do what its own
// roles and those labelled aggregate-to-work allow, and nothing else.
func (f *Fleet) installKlusterlet(ctx context.Context, c *client) error {
	dir, err := f.builder.moduleDir(ctx, "ocm", ocmModule)
	if err != nil {
		return err
	}
	crds, err := loadObjects(filepath.Join(dir, "manifests/klusterlet/managed/*.crd.yaml"), nil)
	if err != nil {
		return err
	}
	if err := c.ensureCRDs(ctx, crds); err != nil {
		return err
	}
	const klusterlet = "klusterlet"
	values := rendered(object{
		"KlusterletName": klusterlet, "KlusterletNamespace": agentNamespace, "AgentNamespace": agentNamespace,
		"WorkServiceAccount": workAgent, "Labels": object{}, "ManagedClusterRoleArn": "",
		"RegistrationDriver": object{"AuthType": ""},
	})
	for _, pattern := range []string{
		"managed/klusterlet-work-*.yaml", "management/klusterlet-work-role*.yaml", "management/klusterlet-role-extension-apiserver.yaml",
	} {
		objects, err := loadObjects(filepath.Join(dir, "manifests/klusterlet", pattern), values)
		if err != nil {
			return err
		}
		if err := c.ensure(ctx, objects...); err != nil {
			return err
		}
	}
	// The one role that the operator makes in code.
	return c.ensureMaps(ctx, object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": object{"name": "open-cluster-management:" + klusterlet + "-work:aggregate"},
		"aggregationRule": object{"clusterRoleSelectors": []any{
			object{"matchLabels": object{"open-cluster-management.io/aggregate-to-work": "true"}},
		}},
		"rules": []any{},
	})
}

// karmadaAccess gives Karmada's users what karmadactl join gives them.
func karmadaAccess(m Member) []object {
	account := "karmada-" + m.KarmadaName
	const group = "rbac.authorization.k8s.io"
	return []object{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": account, "namespace": karmadaClusterNamespace}},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": "karmada-impersonator", "namespace": karmadaClusterNamespace}},
		{
			"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": object{"name": "karmada-controller-manager:" + account},
			"rules": []any{
				object{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}},
				object{"nonResourceURLs": []any{"*"}, "verbs": []any{"get"}},
			},
		},
		{
			"apiVersion": group + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "karmada-controller-manager:" + account},
			"roleRef":  object{"apiGroup": group, "kind": "ClusterRole", "name": "karmada-controller-manager:" + account},
			"subjects": []any{object{"kind": "ServiceAccount", "name": account, "namespace": karmadaClusterNamespace}},
		},
	}
}

// node is a node that KWOK will make ready.
func node(name, region, zone string) object {
	capacity := object{
		"cpu": fmt.Sprint(nodeCPU), "memory": fmt.Sprintf("%dGi", nodeMemoryGi), "ephemeral-storage": "1Ti", "pods": "500",
	}
	return object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{"name": name, "labels": object{
			regionLabel: region, zoneLabel: zone, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		"status": object{"capacity": capacity, "allocatable": capacity},
	}
}

// stageFiles are KWOK's own; kubeletStages below complete them.
var stageFiles = []string{"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml", "pod/fast/pod-*.yaml"}

// writeStages writes KWOK's configuration: without stages it does not start.
func (f *Fleet) writeStages(ctx context.Context, path string) error {
	dir, err := f.builder.moduleDir(ctx, "kwok", kwokModule)
	if err != nil {
		return err
	}
	var config bytes.Buffer
	for _, pattern := range stageFiles {
		stages, err := loadObjects(filepath.Join(dir, "kustomize/stage", pattern), nil)
		if err != nil {
			return err
		}
		for _, stage := range stages {
			text, err := stage.MarshalJSON()
			if err != nil {
				return err
			}
			fmt.Fprintf(&config, "---\n%s", text)
		}
	}
	fmt.Fprintf(&config, "---\n%s", kubeletStages)
	return replaceFile(path, config.Bytes())
}

// kubeletStages do what a kubelet does for a running pod and KWOK's own stages do not. Without the first an in-place
// update of OpenKruise would wait for the new image id for ever; without the second the pod would not be ready again
// after it. The last one makes a failing pod: set its condition ContainersReady to False.
const kubeletStages = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-image-changed
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '[.spec.containers[].image] == [.status.containerStatuses[].image]', operator: In, values: ['false']}
  next:
    statusTemplate: |
      {{ $now := Now }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        state:
          running:
            startedAt: {{ $now | Quote }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-ready-again
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.status.conditions[] | select(.type == "Ready") | .status', operator: In, values: ['False']}
    - {key: '` + gatesOpen + `', operator: In, values: ['true']}
  next:
    statusTemplate: |
      conditions:
      - type: Ready
        status: "True"
        lastTransitionTime: {{ Now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-unready
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.status.conditions[] | select(.type == "Ready") | .status', operator: In, values: ['True']}
    - {key: '` + gatesOpen + `', operator: In, values: ['false']}
  next:
    statusTemplate: |
      conditions:
      - type: Ready
        status: "False"
        reason: ReadinessGatesNotReady
        lastTransitionTime: {{ Now | Quote }}
`

// gatesOpen is the kubelet's rule for a running pod's readiness: its containers are ready and all its gates are true.
const gatesOpen = `([.spec.readinessGates[]?.conditionType] + ["ContainersReady"]) - ` +
	`[.status.conditions[] | select(.status == "True") | .type] == []`

func (f *Fleet) nodesReady(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	for i := range m.nodeZones() {
		n, err := c.get(ctx, "v1", "Node", "", fmt.Sprintf("%s-node%d", m.Name, i+1))
		if err != nil {
			return err
		}
		if err := conditionTrue(n, "Ready"); err != nil {
			return err
		}
	}
	return nil
}

// kruiseDefaults asks for a CloneSet without creating it: only with OpenKruise's webhook it comes back with defaults.
func (f *Fleet) kruiseDefaults(ctx context.Context, m Member) error {
	c, err := f.client(m.Name)
	if err != nil {
		return err
	}
	const api, kind = "apps.kruise.io/v1alpha1", "CloneSet"
	labels := object{"app": "probe"}
	probe := &unstructured.Unstructured{Object: object{
		"apiVersion": api, "kind": kind, "metadata": object{"name": "webhook-probe", "namespace": "default"},
		"spec": object{
			"selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []any{object{"name": "main", "image": "probe"}}}},
		},
	}}
	got, err := c.resource(schema.FromAPIVersionAndKind(api, kind), "default").
		Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	if _, ok, _ := unstructured.NestedInt64(got.Object, "spec", "revisionHistoryLimit"); !ok {
		return fmt.Errorf("OpenKruise's webhook does not default CloneSets yet")
	}
	return nil
}

// writeAgentKubeconfigs gives the work agent its two identities: a service account on the member, and on the hub the
// user that registration would have made, to which the registration controller's roles are bound.
func (f *Fleet) writeAgentKubeconfigs(m Member, token string, port int) error {
	spoke, hub := f.path("members", m.Name, "work-agent.kubeconfig"), f.path("members", m.Name, "work-agent-hub.kubeconfig")
	if err := f.pki.writeKubeconfig(spoke, m.Name, httpsURL(port, ""), &clientcmdapi.AuthInfo{Token: token}); err != nil {
		return err
	}
	hubPort, err := f.state.port(apiServerName(Hub))
	if err != nil {
		return err
	}
	group := "system:open-cluster-management:" + m.OCMName
	return f.pki.writeCertKubeconfig(hub, Hub, httpsURL(hubPort, ""), group+":agent", group)
}

// registerOCM creates the ManagedCluster, accepted.
func (f *Fleet) registerOCM(ctx context.Context, m Member) error {
	c, err := f.client(Hub)
	if err != nil {
		return err
	}
	labels := object{
		regionLabel: m.Region, zoneLabel: m.Zone, providerLabel: m.Provider,
		// The registration webhook, which the fleet does not run, would set it.
		"cluster.open-cluster-management.io/clusterset": "default",
	}
	for key, value := range m.Labels {
		labels[key] = value
	}
	return c.ensureMaps(ctx, object{
		"apiVersion": managedClusterAPI, "kind": "ManagedCluster", "metadata": object{"name": m.OCMName, "labels": labels},
		"spec": object{"hubAcceptsClient": true, "leaseDurationSeconds": int64(leaseSeconds)},
	})
}

// agentAllowed waits until the registration controller has let the member's agent in.
func (f *Fleet) agentAllowed(ctx context.Context, m Member) error {
	c, err := f.client(Hub)
	if err != nil {
		return err
	}
	_, err = c.get(ctx, "rbac.authorization.k8s.io/v1", "RoleBinding", m.OCMName, "open-cluster-management:managedcluster:"+m.OCMName+":work")
	return err
}

func (f *Fleet) ocmAvailable(ctx context.Context, m Member) error {
	c, err := f.client(Hub)
	if err != nil {
		return err
	}
	cluster, err := c.get(ctx, managedClusterAPI, "ManagedCluster", "", m.OCMName)
	if err != nil {
		return err
	}
	if err := conditionTrue(cluster, availableCondition); err != nil {
		return err
	}
	if taints, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "taints"); len(taints) > 0 {
		return fmt.Errorf("ManagedCluster %s is tainted: %v", m.OCMName, taints)
	}
	return nil
}

// joinKarmada registers the member in Push mode. Karmada knows bearer tokens only.
func (f *Fleet) joinKarmada(ctx context.Context, m Member, tokens map[string]string, url string) error {
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	id, err := f.clusterID(ctx, m.Name)
	if err != nil {
		return err
	}
	labels := object{}
	for key, value := range m.Labels {
		labels[key] = value
	}
	secret := func(name, token string) object {
		return object{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   object{"name": name, "namespace": karmadaClusterNamespace, "labels": object{"karmada.io/system": "true"}},
			"stringData": object{"token": token, "caBundle": string(f.pki.pem)},
		}
	}
	return c.ensureMaps(ctx,
		secret(m.KarmadaName, tokens["karmada-"+m.KarmadaName]),
		secret(m.KarmadaName+"-impersonator", tokens["karmada-impersonator"]),
		object{
			"apiVersion": clusterAPI, "kind": "Cluster", "metadata": object{"name": m.KarmadaName, "labels": labels},
			"spec": object{
				"syncMode": "Push", "apiEndpoint": url, "id": id,
				"secretRef":             object{"namespace": karmadaClusterNamespace, "name": m.KarmadaName},
				"impersonatorSecretRef": object{"namespace": karmadaClusterNamespace, "name": m.KarmadaName + "-impersonator"},
				"provider":              m.Provider, "region": m.Region, "zones": []any{m.Zone},
			},
		})
}

// karmadaReady waits until Karmada sees the member ready and has listed OpenKruise's kinds: before that it schedules
// no CloneSet there.
func (f *Fleet) karmadaReady(ctx context.Context, m Member) error {
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	cluster, err := c.get(ctx, clusterAPI, "Cluster", "", m.KarmadaName)
	if err != nil {
		return err
	}
	if err := conditionTrue(cluster, "Ready"); err != nil {
		return err
	}
	enablements, _, _ := unstructured.NestedSlice(cluster.Object, "status", "apiEnablements")
	for _, e := range enablements {
		if group, _ := e.(object)["groupVersion"].(string); strings.HasPrefix(group, "apps.kruise.io/") {
			return f.executionSpace(ctx, c, m)
		}
	}
	return fmt.Errorf("Karmada has not listed OpenKruise's kinds of %s yet", m.KarmadaName)
}

func (f *Fleet) executionSpace(ctx context.Context, c *client, m Member) error {
	_, err := c.get(ctx, "v1", "Namespace", "", "karmada-es-"+m.KarmadaName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("Karmada has not made the execution space of %s yet", m.KarmadaName)
	}
	return err
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
