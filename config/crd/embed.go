// Package crd has the CustomResourceDefinition of FleetWorkloads, as it is installed.
package crd

import _ "embed"

// FleetWorkload is the definition as YAML.
//
//go:embed bases/apps.fleetworkload.io_fleetworkloads.yaml
var FleetWorkload []byte
