// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ports returns the ports kept under the keys, choosing those that are new.
func (f *Fleet) ports(keys ...string) (map[string]int, error) {
	ports := make(map[string]int, len(keys))
	for _, key := range keys {
		port, err := f.state.port(key)
		if err != nil {
			return nil, err
		}
		ports[key] = port
	}
	return ports, nil
}

func (f *Fleet) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// command returns a unit's command: a binary of the fleet with arguments.
func (f *Fleet) command(binary string, args ...string) func() (command, error) {
	return f.commandEnv(binary, nil, args...)
}

func (f *Fleet) commandEnv(binary string, env []string, args ...string) func() (command, error) {
	return func() (command, error) {
		path, ok := f.paths[binary]
		if !ok {
			return command{}, fmt.Errorf("%s was not built", binary)
		}
		return command{path: path, args: args, env: env}, nil
	}
}

func httpsURL(port int, path string) string {
	return fmt.Sprintf("https://%s:%d%s", loopback, port, path)
}

func httpURL(port int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", loopback, port, path)
}

func address(port int) string { return fmt.Sprintf("%s:%d", loopback, port) }

func apiServerName(cluster string) string { return cluster + "-kube-apiserver" }

// etcdUnits is the one etcd behind all API servers; each has its own prefix.
func (f *Fleet) etcdUnits() ([]unit, error) {
	p, err := f.ports("etcd", "etcd-peer")
	if err != nil {
		return nil, err
	}
	client, peer := httpURL(p["etcd"], ""), httpURL(p["etcd-peer"], "")
	return []unit{{
		name: "etcd",
		command: f.command("etcd",
			"--name=lab", "--data-dir="+f.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls="+client, "--advertise-client-urls="+client,
			"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=lab="+peer,
			// Many API servers write here, and a fleet may stay up for days.
			"--quota-backend-bytes=8589934592", "--auto-compaction-mode=periodic", "--auto-compaction-retention=30m"),
		ready: answers(client + "/health"),
	}}, nil
}

// token is a user of a member's API server that signs in with a bearer token.
type token struct {
	token, user string
	groups      []string
}

// serviceAccountToken is a token that stands for a service account. RBAC knows service accounts by this user name, so
// the bindings of the real installations apply.
func serviceAccountToken(namespace, name string) (token, error) {
	t, err := randomToken()
	return token{
		token:  t,
		user:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name),
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}, err
}

// eventLimit has an API server refuse nearly all events.
const eventLimit = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Server, qps: 1, burst: 1}]
`

// apiServer says how the API server of one cluster differs from the others.
type apiServer struct {
	cluster string
	// tokens is the path of a token file, or empty. The API server reads it once, at its start.
	tokens string
	// withoutAdmission are admission plugins to switch off.
	withoutAdmission []string
	// args are further arguments.
	args []string
}

// apiServerUnit is the kube-apiserver of a cluster.
func (f *Fleet) apiServerUnit(s apiServer) (unit, error) {
	name := apiServerName(s.cluster)
	p, err := f.ports(name, "etcd")
	if err != nil {
		return unit{}, err
	}
	url := httpsURL(p[name], "")
	args := []string{
		"--bind-address=" + loopback, "--advertise-address=" + loopback, fmt.Sprintf("--secure-port=%d", p[name]),
		"--etcd-servers=" + httpURL(p["etcd"], ""), "--etcd-prefix=/" + s.cluster,
		"--client-ca-file=" + f.pki.file("ca.crt"),
		"--tls-cert-file=" + f.pki.file("serving.crt"), "--tls-private-key-file=" + f.pki.file("serving.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + f.pki.file("service-account.pub"),
		"--service-account-signing-key-file=" + f.pki.file("service-account.key"),
		"--authorization-mode=RBAC", "--allow-privileged=true", "--service-cluster-ip-range=10.96.0.0/16",
		// Loopback addresses are refused in Endpoints; without this the log fills with that error.
		"--endpoint-reconciler-type=none",
		// The aggregator signs in to Karmada's aggregated API server with these.
		"--requestheader-client-ca-file=" + f.pki.file("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + f.pki.file("front-proxy.crt"), "--proxy-client-key-file=" + f.pki.file("front-proxy.key"),
		"--profiling=false",
	}
	if s.tokens != "" {
		args = append(args, "--token-auth-file="+s.tokens)
	}
	// A third of what is asked of Karmada's API server is to keep events. Nobody reads them on a fleet that is gone after the tests, but
	// the operator's, on the hub.
	refuseEvents := Temporary() && s.cluster != Hub
	if refuseEvents {
		args = append(args, "--enable-admission-plugins=EventRateLimit", "--admission-control-config-file="+f.path("admission.yaml"))
	}
	if len(s.withoutAdmission) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(s.withoutAdmission, ","))
	}
	args = append(args, s.args...)
	return unit{
		name:  name,
		needs: []string{"etcd"},
		prepare: func(context.Context) error {
			if refuseEvents {
				if err := writeFile(f.path("admission.yaml"), []byte(eventLimit)); err != nil {
					return err
				}
			}
			path := f.Kubeconfig(s.cluster)
			if exists(path) {
				return nil
			}
			return f.pki.writeCertKubeconfig(path, s.cluster, url, "fleetworkload-lab", "system:masters")
		},
		command: f.command("kube-apiserver", args...),
		ready: func(ctx context.Context) error {
			if err := answers(url + "/readyz")(ctx); err != nil {
				return err
			}
			return f.systemNamespace(ctx, s.cluster)
		},
	}, nil
}

// systemNamespace waits for kube-system, which the API server makes shortly after it is ready.
func (f *Fleet) systemNamespace(ctx context.Context, cluster string) error {
	_, err := f.clusterID(ctx, cluster)
	return err
}

// clusterID is the UID of kube-system, by which Karmada and OCM both identify a cluster.
func (f *Fleet) clusterID(ctx context.Context, cluster string) (string, error) {
	c, err := f.client(cluster)
	if err != nil {
		return "", err
	}
	ns, err := c.get(ctx, "v1", "Namespace", "", "kube-system")
	if err != nil {
		return "", err
	}
	return string(ns.GetUID()), nil
}

// controlPlaneControllers keep a control plane that runs no pods: never more than these on Karmada, or its templates
// would be rolled out there.
const controlPlaneControllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller," +
	"serviceaccount-token-controller,clusterrole-aggregation-controller"

// controllerManager says how the kube-controller-manager of one cluster differs from the others.
type controllerManager struct {
	cluster, controllers string
	needs, args          []string
}

// controllerManagerUnit is the kube-controller-manager of a cluster.
func (f *Fleet) controllerManagerUnit(s controllerManager) (unit, error) {
	name := s.cluster + "-kube-controller-manager"
	p, err := f.ports(name)
	if err != nil {
		return unit{}, err
	}
	kubeconfig := f.Kubeconfig(s.cluster)
	args := []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback, fmt.Sprintf("--secure-port=%d", p[name]),
		"--tls-cert-file=" + f.pki.file("serving.crt"), "--tls-private-key-file=" + f.pki.file("serving.key"),
		"--controllers=" + s.controllers, "--leader-elect=false", "--profiling=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--service-account-private-key-file=" + f.pki.file("service-account.key"), "--root-ca-file=" + f.pki.file("ca.crt"),
	}
	return unit{
		name:    name,
		needs:   append([]string{apiServerName(s.cluster)}, s.needs...),
		command: f.command("kube-controller-manager", append(args, s.args...)...),
		ready:   answers(httpsURL(p[name], "/healthz")),
	}, nil
}

// writeFile writes a file of the fleet unless it exists.
func writeFile(path string, content []byte) error {
	if exists(path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// replaceFile writes a file of the fleet.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// collect joins units and the errors of making them.
func collect(units []unit, more ...func() (unit, error)) ([]unit, error) {
	for _, make := range more {
		u, err := make()
		if err != nil {
			return nil, err
		}
		units = append(units, u)
	}
	return units, nil
}
