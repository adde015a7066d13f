//go:build deps

// Package deps keeps modules in go.mod that code under construction will import.
package deps

import (
	_ "github.com/distribution/reference"
	_ "github.com/evanphx/json-patch/v5"
	_ "github.com/go-logr/zapr"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	_ "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	_ "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	_ "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	_ "github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"
	_ "github.com/karmada-io/karmada/pkg/util/helper"
	_ "github.com/karmada-io/karmada/pkg/util/names"
	_ "github.com/karmada-io/karmada/pkg/util/overridemanager"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "github.com/openkruise/kruise-api/apps/v1alpha1"
	_ "github.com/openkruise/kruise-api/apps/v1beta1"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/spf13/cobra"
	_ "go.uber.org/zap"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "open-cluster-management.io/api/cluster/v1"
	_ "open-cluster-management.io/api/cluster/v1beta1"
	_ "open-cluster-management.io/api/cluster/v1beta2"
	_ "open-cluster-management.io/api/work/v1"
	_ "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/yaml"
)
