// Package measure turns what FleetWorkloads' statuses say into metrics. No series is of one FleetWorkload or of one cluster: kube-state-metrics
// has those of FleetWorkloads, see config/monitoring.
package measure
