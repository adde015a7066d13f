//go:build e2e

package e2e

// endings are lives that do not go well, never begin, or are resumed: what lives() leaves out.
func endings() []life {
	two, podTemplate := ptr(int32(2)), []string{"spec", "template", "spec"}
	workload := func(name, apiVersion, kind, spec string, steps map[string]change) life {
		l := life{name: name, apiVersion: apiVersion, kind: kind, pod: podTemplate, spec: `{` + selected + spec + `}`, steps: steps}
		if kind != "DaemonSet" {
			l.replicas = two
		}
		return l
	}
	job := func(name, apiVersion, kind, spec string, steps map[string]change) life {
		return life{name: name, apiVersion: apiVersion, kind: kind, pod: podTemplate, steps: steps,
			spec: `{template: {spec: {restartPolicy: Never}}, ` + spec + `}`}
	}
	broadcast := func(name, spec string, steps map[string]change) life {
		return job(name, "apps.kruise.io/v1alpha1", "BroadcastJob", spec, steps)
	}
	onDelete := func(done, updated, message string) map[string]change {
		return map[string]change{
			"create": {image: "1", health: healthy, counts: done},
			"update": {image: "2", health: healthy, message: "pods are updated as they are deleted: " + message, counts: updated},
		}
	}
	return []life{
		workload("deployment-paused", "apps/v1", "Deployment", `, paused: true`, map[string]change{
			"create": {image: "1", health: suspended, message: "paused with 0 of 2 updated", counts: "2/0/0/0/0"},
			"resume": {set: `{paused: false}`, health: healthy, counts: "2/2/2/2/2"},
		}),
		workload("deployment-deadline", "apps/v1", "Deployment", `, progressDeadlineSeconds: 1`, map[string]change{
			"create": {image: "1", cpu: tooMuch, health: degraded, message: "no progress within its deadline, 2 of 2 updated", counts: "2/2/0/2/0"},
			// What went wrong is over when the cause is.
			"update": {image: "2", health: healthy, counts: "2/2/2/2/2"},
		}),
		// Its pods come one after the other.
		workload("statefulset-stuck", "apps/v1", "StatefulSet", `, serviceName: none`, map[string]change{
			"create": {image: "1", cpu: tooMuch, health: progressing, message: "1 of 2 updated", counts: "2/1/0/1/0"},
		}),
		workload("statefulset-ondelete", "apps/v1", "StatefulSet", `, serviceName: none, updateStrategy: {type: OnDelete}`,
			onDelete("2/2/2/2/2", "2/2/2/0/2", "0 of 2 updated")),
		workload("daemonset-ondelete", "apps/v1", "DaemonSet", `, updateStrategy: {type: OnDelete}`,
			onDelete("3/3/3/3/3", "3/3/3/0/3", "0 of 3 updated")),
		{name: "daemonset-nowhere", apiVersion: "apps/v1", kind: "DaemonSet", pod: podTemplate,
			spec:  `{selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {nodeSelector: {nowhere: "true"}}}}`,
			steps: map[string]change{"create": {image: "1", health: healthy, message: "no node matches", counts: "0/0/0/0/0"}}},
		job("job-failed", "batch/v1", "Job", `activeDeadlineSeconds: 1`, map[string]change{
			"create": {image: "1", cpu: tooMuch, health: degraded, message: "failed: DeadlineExceeded, 0 succeeded"},
		}),
		job("job-resumed", "batch/v1", "Job", `suspend: true`, map[string]change{
			"create": {image: "1", health: suspended, message: "suspended with 0 succeeded"},
			"resume": {set: `{suspend: false}`, health: healthy, message: "finished: 1 succeeded"},
		}),
		broadcast("broadcastjob-never", `completionPolicy: {type: Never}`, map[string]change{
			"create": {image: "1", health: healthy, message: "runs on all 3 nodes, and never completes by its policy"},
		}),
		// Without parallelism it may not begin.
		broadcast("broadcastjob-waiting", `parallelism: 0`, map[string]change{
			"create": {image: "1", health: progressing, message: "0 active, 0 of 3 succeeded, 0 failed"},
		}),
		broadcast("broadcastjob-failed", `parallelism: 0, completionPolicy: {type: Always, activeDeadlineSeconds: 1}`, map[string]change{
			"create": {image: "1", health: degraded, message: "failed: 0 of 3 succeeded"},
		}),
		broadcast("broadcastjob-resumed", `paused: true`, map[string]change{
			"create": {image: "1", health: suspended, message: "paused with 0 of 3 succeeded"},
			"resume": {set: `{paused: false}`, health: healthy, message: "finished: 3 of 3 succeeded"},
		}),
	}
}
