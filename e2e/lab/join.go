// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// joinOCMUnits registers a member with OCM and runs its work agent.
func (f *Fleet) joinOCMUnits(m Member, tokens map[string]string) ([]unit, error) {
	name := func(part string) string { return m.Name + "-" + part }
	p, err := f.ports(name("work-agent"), apiServerName(m.Name))
	if err != nil {
		return nil, err
	}
	return []unit{
		{
			name: name("managedcluster"), needs: []string{"ocm-registration", "hub-manifests"},
			prepare: func(ctx context.Context) error { return f.registerOCM(ctx, m) },
			ready:   func(ctx context.Context) error { return f.agentAllowed(ctx, m) },
		},
		{
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
		{
			name: name("ocm-available"), needs: []string{"ocm-heartbeat", name("work-agent")},
			ready: func(ctx context.Context) error { return f.ocmAvailable(ctx, m) },
		},
	}, nil
}

// joinKarmadaUnits register a member with Karmada, in Pull mode with its agent. After OpenKruise's manager: Karmada lists the kinds of a
// member every few seconds only.
func (f *Fleet) joinKarmadaUnits(m Member, tokens map[string]string) ([]unit, error) {
	port, err := f.state.port(apiServerName(m.Name))
	if err != nil {
		return nil, err
	}
	url := httpsURL(port, "")
	ready := unit{
		name: m.Name + "-karmada-ready", needs: []string{"karmada-controller-manager", m.Name + "-kruise-manager"},
		ready: func(ctx context.Context) error { return f.karmadaReady(ctx, m) },
	}
	if !m.Pull {
		ready.prepare = func(ctx context.Context) error { return f.joinKarmada(ctx, m, tokens, url) }
		return []unit{ready}, nil
	}
	agent, err := f.karmadaAgentUnit(m, tokens[karmadaAgentAccount], url)
	if err != nil {
		return nil, err
	}
	agent.needs = ready.needs
	ready.needs = []string{agent.name}
	return []unit{agent, ready}, nil
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
	cluster, err := f.karmadaCluster(ctx, m, "Push", url)
	if err != nil {
		return err
	}
	spec := cluster["spec"].(object)
	spec["secretRef"] = object{"namespace": karmadaClusterNamespace, "name": m.KarmadaName}
	spec["impersonatorSecretRef"] = object{"namespace": karmadaClusterNamespace, "name": m.KarmadaName + "-impersonator"}
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
		cluster)
}

// karmadaCluster is what Karmada knows of a member, but for credentials.
func (f *Fleet) karmadaCluster(ctx context.Context, m Member, mode, url string) (object, error) {
	id, err := f.clusterID(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	labels := object{}
	for key, value := range m.Labels {
		labels[key] = value
	}
	return object{
		"apiVersion": clusterAPI, "kind": "Cluster", "metadata": object{"name": m.KarmadaName, "labels": labels},
		"spec": object{
			"syncMode": mode, "apiEndpoint": url, "id": id,
			"provider": m.Provider, "region": m.Region, "zones": []any{m.Zone},
		},
	}, nil
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
