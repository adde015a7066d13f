// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	karmadaAgent        = "karmada-agent"
	karmadaAgentAccount = "karmada-agent-sa"
)

// mayPull is an error when a member that shall be in Pull mode is not there, or is in the other one already.
func (s *state) mayPull(opts Options) error {
	for _, name := range opts.Pull {
		m, made := s.member(name)
		switch {
		case made && !m.Pull:
			return fmt.Errorf("%s was made in push mode: take the fleet down first", name)
		case !made && !slices.Contains(memberNames(opts.Members), name):
			return fmt.Errorf("%s shall be in pull mode, but is no member", name)
		}
	}
	return nil
}

// pulls tells whether any member is in Pull mode.
func (s *state) pulls() bool {
	return slices.ContainsFunc(s.Members, func(m Member) bool { return m.Pull })
}

// karmadaAgentUnit is the agent of a member in Pull mode. Karmada gets no credentials of the member: where clusters are in this mode, it mostly
// does not reach them.
func (f *Fleet) karmadaAgentUnit(m Member, token, url string) (unit, error) {
	name := m.Name + "-" + karmadaAgent
	p, err := f.ports(name, apiServerName(Karmada))
	if err != nil {
		return unit{}, err
	}
	spoke, hub := f.path("members", m.Name, "karmada-agent.kubeconfig"), f.path("members", m.Name, "karmada-agent-karmada.kubeconfig")
	return unit{
		name: name,
		prepare: func(ctx context.Context) error {
			if err := f.pki.writeKubeconfig(spoke, m.Name, url, &clientcmdapi.AuthInfo{Token: token}); err != nil {
				return err
			}
			err := f.pki.writeCertKubeconfig(hub, Karmada, httpsURL(p[apiServerName(Karmada)], ""), agentUser(m), "system:karmada:agents")
			if err != nil {
				return err
			}
			return f.registerPull(ctx, m, url)
		},
		command: f.command(karmadaAgent,
			"--kubeconfig="+spoke, "--karmada-kubeconfig="+hub, "--cluster-name="+m.KarmadaName, "--cluster-api-endpoint="+url,
			"--cluster-provider="+m.Provider, "--cluster-region="+m.Region, "--cluster-zones="+m.Zone, "--report-secrets=None",
			"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address="+address(p[name]),
			// As karmada-controller-manager's.
			"--kube-api-qps=200", "--kube-api-burst=400", "--cluster-api-qps=200", "--cluster-api-burst=400",
			"--cluster-status-update-frequency=5s", "--cluster-failure-threshold=10s", "--cluster-success-threshold=5s"),
		ready: answers(httpURL(p[name], "/healthz")),
	}, nil
}

// agentUser is who the agent is on Karmada.
func agentUser(m Member) string { return "system:karmada:agent:" + m.KarmadaName }

// registerPull creates what karmadactl register does on Karmada, and the Cluster as its agent would register it, with labels: the agent leaves
// one that is as it wants it.
func (f *Fleet) registerPull(ctx context.Context, m Member, url string) error {
	c, err := f.client(Karmada)
	if err != nil {
		return err
	}
	cluster, err := f.karmadaCluster(ctx, m, "Pull", url)
	if err != nil {
		return err
	}
	return c.ensureMaps(ctx, append(agentRoles(m), cluster)...)
}

// agentRoles are the rights of a member's agent on Karmada, which karmadactl register makes in code (pkg/karmadactl/register/register.go).
// Those to Secrets are not among them: the agent reports none.
func agentRoles(m Member) []object {
	const group, api = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
	space := "karmada-es-" + m.KarmadaName
	role, works := "system:karmada:"+m.KarmadaName+":agent", "system:karmada:"+m.KarmadaName+":agent-work"
	rule := func(group, resource string, verbs ...any) object {
		return object{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
	}
	itself := func(r object) object {
		r["resourceNames"] = []any{m.KarmadaName}
		return r
	}
	subjects := []any{object{"apiGroup": group, "kind": "User", "name": agentUser(m)}}
	inSpace := namespaceObject(space)
	inSpace["metadata"].(object)["labels"] = object{"karmada.io/system": "true"}
	return []object{
		inSpace,
		{"apiVersion": api, "kind": "ClusterRole", "metadata": object{"name": role}, "rules": []any{
			itself(rule("cluster.karmada.io", "clusters", "get", "delete")),
			rule("cluster.karmada.io", "clusters", "create", "list", "watch"),
			itself(rule("cluster.karmada.io", "clusters/status", "update")),
			rule("config.karmada.io", "resourceinterpreterwebhookconfigurations", "get", "list", "watch"),
			rule("config.karmada.io", "resourceinterpretercustomizations", "get", "list", "watch"),
			rule("", "namespaces", "get"),
			rule("coordination.k8s.io", "leases", "get", "create", "update"),
			rule("certificates.k8s.io", "certificatesigningrequests", "get", "create"),
			rule("", "services", "list", "watch"),
			rule("", "events", "patch", "create", "update"),
		}},
		{
			"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": object{"name": role}, "subjects": subjects,
			"roleRef": object{"apiGroup": group, "kind": "ClusterRole", "name": role},
		},
		{"apiVersion": api, "kind": "Role", "metadata": object{"name": works, "namespace": space}, "rules": []any{
			rule("work.karmada.io", "works", "get", "create", "list", "watch", "update", "delete"),
			rule("work.karmada.io", "works/status", "patch", "update"),
		}},
		{
			"apiVersion": api, "kind": "RoleBinding", "metadata": object{"name": works, "namespace": space}, "subjects": subjects,
			"roleRef": object{"apiGroup": group, "kind": "Role", "name": works},
		},
	}
}

// installKarmadaAgent creates what the agent needs in its member.
func (f *Fleet) installKarmadaAgent(ctx context.Context, c *client) error {
	dir, err := f.builder.moduleDir(ctx, "shared", karmadaModule)
	if err != nil {
		return err
	}
	for _, name := range []string{"namespace", "serviceaccount", "clusterrole", "clusterrolebinding"} {
		objects, err := loadObjects(filepath.Join(dir, "artifacts/agent", name+".yaml"), nil)
		if err != nil {
			return err
		}
		if err := c.ensure(ctx, objects...); err != nil {
			return err
		}
	}
	return nil
}
