package interpreter

import "github.com/fleetworkload/fleetworkload/api/v1alpha1"

// Why jobs make no pods anew.
const (
	runsOnce = "it runs once, and what has run is not run again; create another FleetWorkload to run it once more"
	eachRun  = "each of its runs has pods of its own"
)

func startTime() Field      { return stringField("startTime", Min) }
func completionTime() Field { return stringField("completionTime", MaxAll) }

// job is batch/v1 Job (k8s.io/api/batch/v1). It has no observedGeneration: the conditions Complete, Failed and Suspended
// are the evidence (k8s.io/kubernetes pkg/controller/job/job_controller.go).
func job() Definition {
	return Definition{
		Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs",
		PodTemplates: []string{"spec.template"}, SelfRemovals: []string{"spec.ttlSecondsAfterFinished"},
		NoRestart: runsOnce,
		Status: []Field{
			counter("active"), counter("succeeded"), counter("failed"), hint("ready"), hint("terminating"),
			startTime(), completionTime(),
			conditionField("Complete", All), conditionField("Failed", Any), conditionReason("Failed"),
			conditionField("Suspended", Any), conditionField("FailureTarget", Any), conditionField("SuccessCriteriaMet", All),
		},
		Spec: []Input{
			{Name: "suspend", At: "spec.suspend", Type: TypeBool},
			{Name: "completions", At: "spec.completions", Type: TypeInt},
		},
		Rules: []Rule{
			{When: `conditionFailed == "True"`, Health: v1alpha1.HealthDegraded, Reason: ReasonFailed,
				Message: "failed: {reasonFailed}, {succeeded} succeeded, {failed} failed"},
			{When: `conditionComplete == "True"`, Health: v1alpha1.HealthHealthy, Reason: ReasonSucceeded,
				Message: "finished: {succeeded} succeeded"},
			{When: `conditionSuspended == "True" || suspend`, Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
				Message: "suspended with {succeeded} succeeded"},
			{When: `conditionFailureTarget == "True"`, Health: v1alpha1.HealthProgressing, Reason: ReasonFinishing, Message: "about to fail"},
			{When: `conditionSuccessCriteriaMet == "True"`, Health: v1alpha1.HealthProgressing, Reason: ReasonFinishing, Message: "about to succeed"},
			{When: "!has(startTime)", Health: v1alpha1.HealthProgressing, Reason: ReasonPending, Message: "not started"},
			{Health: v1alpha1.HealthProgressing, Reason: ReasonRunning, Message: "{active} active, {succeeded} succeeded, {failed} failed"},
		},
		Counts: Counts{Done: "succeeded", Total: "when(has(completions), completions, 1)"},
	}
}

// broadcastJob is OpenKruise's BroadcastJob (kruise-api apps/v1alpha1; v1beta1 since OpenKruise 1.9 with the same
// schema). It has no observedGeneration. Without nodes it never completes; with completionPolicy Never it is done when
// every node has a pod (pkg/controller/broadcastjob/broadcastjob_controller.go).
func broadcastJob(version string) Definition {
	return Definition{
		Group: kruiseGroup, Version: version, Kind: "BroadcastJob", Resource: "broadcastjobs",
		PodTemplates: []string{"spec.template"}, SelfRemovals: []string{"spec.completionPolicy.ttlSecondsAfterFinished"},
		NoRestart: runsOnce,
		Status: []Field{
			told("desired"), told("active"), told("succeeded"), told("failed"),
			{Name: "phase", Type: TypeString, Combine: Worst, Order: []string{"failed", "paused", "running", "completed"}, Required: true},
			startTime(), completionTime(), conditionField("Complete", All), conditionField("Failed", Any),
		},
		Spec: []Input{
			{Name: "paused", At: "spec.paused", Type: TypeBool},
			{Name: "policy", At: "spec.completionPolicy.type", Type: TypeString},
		},
		Rules: []Rule{
			{When: `conditionFailed == "True" || phase == "failed"`, Health: v1alpha1.HealthDegraded, Reason: ReasonFailed,
				Message: "failed: {succeeded} of {desired} succeeded, {failed} failed"},
			{When: `(conditionComplete == "True" || phase == "completed") && failed > 0`, Health: v1alpha1.HealthHealthy, Reason: ReasonSucceeded,
				Message: "finished: {succeeded} of {desired} succeeded, {failed} failed, which its failure policy lets pass"},
			{When: `conditionComplete == "True" || phase == "completed"`, Health: v1alpha1.HealthHealthy, Reason: ReasonSucceeded,
				Message: "finished: {succeeded} of {desired} succeeded"},
			{When: `paused || phase == "paused"`, Health: v1alpha1.HealthSuspended, Reason: ReasonPaused,
				Message: "paused with {succeeded} of {desired} succeeded"},
			{When: "!has(phase)", Health: v1alpha1.HealthProgressing, Reason: ReasonPending, Message: "not started"},
			{When: "has(desired) && desired == 0", Health: v1alpha1.HealthHealthy, Reason: ReasonNothingToRun, Message: "no node matches"},
			{When: `policy == "Never" && desired > 0 && succeeded + active >= desired`, Health: v1alpha1.HealthHealthy, Reason: ReasonRunning,
				Message: "runs on all {desired} nodes, and never completes by its policy"},
			{Health: v1alpha1.HealthProgressing, Reason: ReasonRunning,
				Message: "{active} active, {succeeded} of {desired} succeeded, {failed} failed"},
		},
		Counts: Counts{Done: "succeeded", Total: "desired"},
	}
}

// activeJobs is how many jobs of a schedule are at work. OCM feeds scalars only, so that nobody knows there.
func activeJobs() Field {
	return Field{Name: "activeJobs", At: "active", Type: TypeCount, Combine: Sum}
}

// cronJob is batch/v1 CronJob (k8s.io/api/batch/v1). A schedule has no rollout: that it is there is all that is asked of it,
// and how its last run ended stands in the message. The status does not say it outright: lastScheduleTime is when the last
// run began, lastSuccessfulTime when the last successful one ended (k8s.io/kubernetes pkg/controller/cronjob/
// cronjob_controllerv2.go), so that a run has ended badly when no success came after it and none is active. Of runs at the
// same time it cannot be told which one has succeeded.
func cronJob() Definition {
	return Definition{
		Group: "batch", Version: "v1", Kind: "CronJob", Resource: "cronjobs", StatusOptional: true,
		PodTemplates: []string{"spec.jobTemplate.spec.template"},
		NoRestart:    eachRun,
		Status: []Field{
			activeJobs(), {Name: "activeJob", At: "active[kind=Job].name", Type: TypeString},
			stringField("lastScheduleTime", Max), stringField("lastSuccessfulTime", Min),
		},
		Spec: []Input{{Name: "suspend", At: "spec.suspend", Type: TypeBool}},
		Rules: []Rule{
			{When: "suspend", Health: v1alpha1.HealthSuspended, Reason: ReasonPaused, Message: "suspended"},
			{When: "has(activeJob)", Health: v1alpha1.HealthHealthy, Reason: ReasonScheduled},
			{When: "has(lastScheduleTime) && has(lastSuccessfulTime) && lastSuccessfulTime < lastScheduleTime",
				Health: v1alpha1.HealthHealthy, Reason: ReasonRunNotSucceeded,
				Message: "the last run, of {lastScheduleTime}, has ended without success; the last success was at {lastSuccessfulTime}"},
			{When: "has(lastScheduleTime) && !has(lastSuccessfulTime)", Health: v1alpha1.HealthHealthy, Reason: ReasonRunNotSucceeded,
				Message: "the last run, of {lastScheduleTime}, has ended; no success of it or of an earlier one is reported"},
			{Health: v1alpha1.HealthHealthy, Reason: ReasonScheduled},
		},
	}
}

// advancedCronJob is OpenKruise's AdvancedCronJob (kruise-api apps/v1alpha1; v1beta1 since OpenKruise 1.9). Its template
// cannot be changed. Its status has no word on how a run ends.
func advancedCronJob(version string) Definition {
	return Definition{
		Group: kruiseGroup, Version: version, Kind: "AdvancedCronJob", Resource: "advancedcronjobs",
		PodTemplates: []string{"spec.template.jobTemplate.spec.template", "spec.template.broadcastJobTemplate.spec.template"},
		NoRestart:    eachRun,
		Status:       []Field{activeJobs(), stringField("lastScheduleTime", Max), stringField("type", Equal)},
		Spec:         []Input{{Name: "paused", At: "spec.paused", Type: TypeBool}},
		Rules: []Rule{
			{When: "paused", Health: v1alpha1.HealthSuspended, Reason: ReasonPaused, Message: "suspended"},
			{When: "has(lastScheduleTime)", Health: v1alpha1.HealthHealthy, Reason: ReasonScheduled,
				Message: "it has run; whether with success its status does not say"},
			{Health: v1alpha1.HealthHealthy, Reason: ReasonScheduled},
		},
	}
}

// workflow is argoproj.io/v1alpha1 Workflow (argo-workflows pkg/apis/workflow/v1alpha1). It has no status subresource,
// so that its controller's own writes raise the generation, and no observedGeneration: only the phase tells.
func workflow() Definition {
	return Definition{
		Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow", Resource: "workflows", NoRestart: runsOnce,
		// The second is that of Argo before 3.0.
		SelfRemovals: []string{"spec.ttlStrategy", "spec.ttlSecondsAfterFinished"},
		Status: []Field{
			{Name: "phase", Type: TypeString, Combine: Worst, Order: []string{"Error", "Failed", "", "Pending", "Running", "Succeeded"}},
			stringField("progress", PerCluster), stringField("startedAt", Min), stringField("finishedAt", MaxAll), stringField("message", PerCluster),
		},
		Spec: []Input{{Name: "suspend", At: "spec.suspend", Type: TypeBool}},
		Rules: []Rule{
			{When: `phase == "Succeeded"`, Health: v1alpha1.HealthHealthy, Reason: ReasonSucceeded},
			{When: `phase == "Failed" || phase == "Error"`, Health: v1alpha1.HealthDegraded, Reason: ReasonFailed, Message: "{phase}: {message}"},
			{When: "suspend", Health: v1alpha1.HealthSuspended, Reason: ReasonPaused, Message: "suspended at {progress}"},
			{When: `phase == "Running"`, Health: v1alpha1.HealthProgressing, Reason: ReasonRunning, Message: "running, {progress} done"},
			{Health: v1alpha1.HealthProgressing, Reason: ReasonPending, Message: "not started"},
		},
		Counts:       Counts{Done: "done(progress)", Total: "total(progress)"},
		Dependencies: workflowReferences,
	}
}
