package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// lostSince tells whether a cluster has been lost for longer than the spec bears, and since when it is lost. Otherwise it
// notes when that may be.
func (t *trial) lostSince(c backends.Cluster) (lost bool, since time.Time) {
	patience := seconds(t.placement.Failover.TolerationSeconds, DefaultTolerationSeconds)
	if c.Ready != metav1.ConditionTrue {
		if t.over(c.ReadySince, patience) {
			return true, c.ReadySince
		}
	}
	for _, taint := range c.Taints {
		if taint.Effect != backends.TaintNoExecute {
			continue
		}
		bears, limited := patience, true
		if toleration := tolerationOf(t.placement.Tolerations, taint); toleration != nil {
			bears, limited = seconds(toleration.TolerationSeconds, 0), toleration.TolerationSeconds != nil
		}
		if limited && t.over(taint.Added, bears) {
			return true, taint.Added
		}
	}
	return false, time.Time{}
}

// over tells whether so much time has passed since then. If not, the choice is to be made again when it has. What is
// not known to have begun is not over.
func (t *trial) over(since time.Time, patience time.Duration) bool {
	if since.IsZero() && patience > 0 {
		return false
	}
	left := patience - t.situation.Now.Sub(since)
	if left <= 0 {
		return true
	}
	t.again = backends.Sooner(t.again, left)
	return false
}

func seconds(n *int32, fallback int32) time.Duration {
	if n != nil {
		fallback = *n
	}
	return time.Duration(fallback) * time.Second
}

// untolerated tells whether a taint keeps new workloads away.
func (t *trial) untolerated(taints []backends.Taint) bool {
	for _, taint := range taints {
		if taint.Effect == backends.TaintNoSchedule || taint.Effect == backends.TaintNoExecute {
			if tolerationOf(t.placement.Tolerations, taint) == nil {
				return true
			}
		}
	}
	return false
}

// tolerationOf is the first toleration that fits the taint, by Kubernetes' rules; nil when none does.
func tolerationOf(tolerations []v1alpha1.ClusterToleration, taint backends.Taint) *v1alpha1.ClusterToleration {
	for i, t := range tolerations {
		if t.Key != "" && t.Key != taint.Key {
			continue
		}
		if t.Operator == string(corev1.TolerationOpExists) || t.Key != "" && t.Value == taint.Value {
			return &tolerations[i]
		}
	}
	return nil
}
