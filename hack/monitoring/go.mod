module github.com/fleetworkload/fleetworkload/hack/monitoring

go 1.25.7

require sigs.k8s.io/yaml v1.6.0

require go.yaml.in/yaml/v2 v2.4.2 // indirect
