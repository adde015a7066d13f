package main

import (
	"fmt"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// sayNext ends the demo with what to try, ready to be copied.
func (d *demo) sayNext() {
	fmt.Fprintf(d.out, `
Fleet and operator go on running. Try:

  export KUBECONFIG=%[1]s
  alias kubectl=%[2]s
  export PATH=$PWD/bin:$PATH      # makes kubectl fw work

  kubectl -n %[3]s get fleetworkloads --watch
  kubectl fw -n %[3]s status cloneset-karmada

  # Scale the fleet: 18 pods are divided 2:1 again, 12 and 6
  kubectl -n %[3]s scale fleetworkload cloneset-karmada --replicas=18
  kubectl -n %[3]s wait fleetworkload cloneset-karmada --for=condition=Ready --timeout=2m

  # What is written to the backend?
  kubectl fw -n %[3]s render --config %[4]s -f config/samples/deployment-ocm.yaml

  # What was shipped, and back to an image before
  kubectl -n %[3]s patch fleetworkload deployment-ocm --type=json \
    -p '[{"op":"replace","path":"/spec/template/spec/template/spec/containers/0/image","value":"nginx:1.28"}]'
  kubectl fw -n %[3]s history deployment-ocm
  kubectl fw -n %[3]s undo deployment-ocm

  # Lose a member cluster, watch its numbers turn stale (about a minute), get it back
  go run ./e2e/lab/cmd/lab --dir %[5]s member pause member1
  kubectl fw -n %[3]s status cloneset-ocm --watch
  go run ./e2e/lab/cmd/lab --dir %[5]s member resume member1

  # What the members run
  kubectl --kubeconfig %[6]s -n %[3]s get deployments,clonesets,pods

The operator is process %[7]d, its log %[8]s.
make demo    does all of it again, with Karmada back and the operator built anew
make lab-down    stops everything and removes its state
`, d.fleet.Kubeconfig(lab.Hub), d.fleet.Kubectl(), namespace, relative(d.path("operator.yaml")),
		relative(d.fleet.Dir()), relative(d.fleet.Kubeconfig("member1")), d.operator.pid, relative(d.operator.log))
}
