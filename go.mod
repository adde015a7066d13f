module github.com/fleetworkload/fleetworkload

go 1.25.7

require (
	github.com/karmada-io/karmada v1.17.1
	github.com/openkruise/kruise-api v1.8.0
	go.uber.org/zap v1.27.0
	open-cluster-management.io/api v1.2.0
	sigs.k8s.io/controller-runtime v0.23.1
)
