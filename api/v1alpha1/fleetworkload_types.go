package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DeletionPolicy says what happens to the member objects when a FleetWorkload is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the member objects, and waits until the backend confirms it.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the member objects running, without any mark of the backend's mode.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// ConflictPolicy says what happens when a member cluster already has an object of the template's name that this
// FleetWorkload did not create.
// +kubebuilder:validation:Enum=Fail;Adopt
type ConflictPolicy string

const (
	// ConflictPolicyFail leaves the foreign object alone and reports the cluster as conflicting.
	ConflictPolicyFail ConflictPolicy = "Fail"
	// ConflictPolicyAdopt takes the foreign object over and makes it equal to the target manifest. Clusters are asked first
	// what they run, and a take-over that would take pods away is held.
	ConflictPolicyAdopt ConflictPolicy = "Adopt"
)

// DriftPolicy says what becomes of a change that somebody else makes to the workload's object on a member cluster.
// +kubebuilder:validation:Enum=Correct;Report
type DriftPolicy string

const (
	// DriftPolicyCorrect has the backend put it back.
	DriftPolicyCorrect DriftPolicy = "Correct"
	// DriftPolicyReport leaves it until something new is delivered to the cluster, and tells of it in the condition Drifted.
	DriftPolicyReport DriftPolicy = "Report"
)

// DependencyPolicy says whether objects the pod template refers to travel with the workload.
// +kubebuilder:validation:Enum=Propagate;Ignore
type DependencyPolicy string

const (
	// DependencyPolicyPropagate sends ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims along.
	DependencyPolicyPropagate DependencyPolicy = "Propagate"
	// DependencyPolicyIgnore expects them to be on the member clusters already.
	DependencyPolicyIgnore DependencyPolicy = "Ignore"
)

// FleetWorkloadSpec is the wanted state of one workload on a fleet of clusters.
// +kubebuilder:validation:XValidation:rule="!has(self.backendOptions) || !has(self.backendOptions.ocm) || !has(self.backendOptions.ocm.executor) || has(self.serviceAccountName)",message="backendOptions.ocm.executor needs serviceAccountName: the account to write as"
type FleetWorkloadSpec struct {
	// backend is the name of a configured backend that carries the workload out. Changing it moves a running workload
	// from one backend to the other. The operator's configuration lists the names.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Backend string `json:"backend,omitempty"`

	// replicas is the fleet's total when division.type is Divided, and each cluster's number when it is Duplicated.
	// When absent, the number in the template counts, and 1 when the template has none. Kinds without replicas ignore it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Replicas *int32 `json:"replicas,omitempty"`

	// template is the workload's manifest. apiVersion and kind are required; metadata.name defaults to the
	// FleetWorkload's name, and metadata.namespace is always the FleetWorkload's. Kind and name cannot change once the operator carries
	// the workload, which status.workload tells.
	// +required
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template,omitzero"`

	// companions are whole objects that travel along with the workload, such as a Service or a ConfigMap.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XEmbeddedResource
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Companions []runtime.RawExtension `json:"companions,omitempty"`

	// dependencies says whether ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims that the pod template
	// refers to are sent along. When absent: Ignore.
	// +optional
	Dependencies DependencyPolicy `json:"dependencies,omitempty"`

	// placement says which clusters run the workload, and how replicas are spread over them.
	// +required
	Placement Placement `json:"placement,omitzero"`

	// overrides change the manifest on some of the clusters. They apply in the order in which they stand; a later one wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Overrides []Override `json:"overrides,omitempty"`

	// migration says how a change of backend proceeds. When absent, all clusters move at once.
	// +optional
	Migration *MigrationStrategy `json:"migration,omitempty"`

	// conflictPolicy says what happens when a member cluster already has an object of that name that is not this
	// FleetWorkload's. When absent: Fail.
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// drift says what becomes of a change that somebody else makes to the workload's object on a member cluster, be it with kubectl edit or by
	// a program there. With Correct the backend puts it back. With Report, values that were changed stay until this FleetWorkload has
	// something new to deliver to that cluster, and the condition Drifted names them for as long. What is taken out of the object alone, or
	// deleted, comes back, and companions are put back. During a migration it is as with Correct. Report is for backends of type OCM; on
	// others it is refused. When absent: Correct.
	// +optional
	Drift DriftPolicy `json:"drift,omitempty"`

	// deletionPolicy says what happens to the member objects when this FleetWorkload is deleted. When absent: Delete.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// suspend freezes dispatching: no change reaches a member cluster until it is false again. It never removes
	// anything. When absent: false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// approval says who lets a change of what is shipped, or of where it runs, be carried out. With Manual such a change waits, and the
	// workload with it as while it is suspended, until a person has approved what status.change says the change comes to. Changes of replicas,
	// placement.paused, migration, deletionPolicy, suspend and revisionHistoryLimit alone do not wait. When absent: Automatic.
	// +optional
	Approval ApprovalPolicy `json:"approval,omitempty"`

	// revisionHistoryLimit is how many older versions of what is shipped are kept beside the present one, to go back to with kubectl fw undo.
	// What is shipped are template, companions, dependencies and overrides. When absent: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// serviceAccountName names a ServiceAccount of this namespace on the management cluster. Only what it may create here is shipped, of the
	// template and the companions, and only dependencies that it may get. It is asked again and again: when a right is taken from it,
	// nothing more is written, and nothing is removed. When absent, nobody is asked.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// backendOptions are merged over what the driver renders, for what only one backend knows.
	// +optional
	BackendOptions *BackendOptions `json:"backendOptions,omitempty"`
}

// BackendOptions hold partial specs of the backends' own objects.
// +kubebuilder:validation:MinProperties=1
type BackendOptions struct {
	// karmada is used while the workload is carried by a Karmada backend.
	// +optional
	Karmada *KarmadaOptions `json:"karmada,omitempty"`

	// ocm is used while the workload is carried by an Open Cluster Management backend.
	// +optional
	OCM *OCMOptions `json:"ocm,omitempty"`
}

// KarmadaOptions are partial specs of Karmada's policies.
// +kubebuilder:validation:MinProperties=1
type KarmadaOptions struct {
	// propagationPolicy is a partial PropagationPolicy spec, merged over the rendered one as a JSON merge patch. Only schedulePriority can
	// be set.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	PropagationPolicy *runtime.RawExtension `json:"propagationPolicy,omitempty"`
}

// OCMOptions are partial specs of Open Cluster Management's objects.
// +kubebuilder:validation:MinProperties=1
type OCMOptions struct {
	// placement is a partial Placement spec, merged over the rendered one as a JSON merge patch. Only clusterSets, prioritizerPolicy and
	// decisionStrategy can be set.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Placement *runtime.RawExtension `json:"placement,omitempty"`

	// manifestWork is a partial ManifestWork spec, merged over the rendered one as a JSON merge patch. Only manifestConfigs can be set, with
	// one entry: its feedbackRules, conditionRules and the ignoreFields below spec of updateStrategy.serverSideApply.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ManifestWork *runtime.RawExtension `json:"manifestWork,omitempty"`

	// executor is the account as which the agents write the template and the companions. When absent, their own.
	// +optional
	Executor Executor `json:"executor,omitempty"`
}

// Executor is an account as which an agent of Open Cluster Management writes.
// +kubebuilder:validation:Enum=ServiceAccount
type Executor string

const (
	// ExecutorServiceAccount is the account of the FleetWorkload's namespace, on the cluster, that spec.serviceAccountName names. An agent writes
	// only what that may get, create, update and patch there, and asks again each minute. It writes as itself what several FleetWorkloads share, and
	// removes as itself.
	ExecutorServiceAccount Executor = "ServiceAccount"
)

// Override changes the manifest on the clusters it selects.
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || has(self.clusters) && has(self.clusters.names) && size(self.clusters.names) > 0 && !has(self.clusters.exclude) && !has(self.clusters.selector) && !has(self.clusters.attributes)",message="replicas are for clusters that are chosen by clusters.names alone"
type Override struct {
	// name of the override, by which server-side apply and kustomize find it. A new name changes nothing on the clusters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// clusters selects where the override applies. When absent, on every cluster.
	// +optional
	Clusters *ClusterSelector `json:"clusters,omitempty"`

	// images change container images, part by part.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Images []ImageOverride `json:"images,omitempty"`

	// commands replace containers' commands.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Commands []CommandOverride `json:"commands,omitempty"`

	// args replace containers' arguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []ArgsOverride `json:"args,omitempty"`

	// env sets and removes containers' environment variables.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Env []EnvOverride `json:"env,omitempty"`

	// resources replace containers' resource requests and limits, one by one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Resources []ResourcesOverride `json:"resources,omitempty"`

	// labels changes the labels of the workload object; see podLabels.
	// +optional
	Labels *MetadataOverride `json:"labels,omitempty"`

	// annotations changes the annotations of the workload object; see podAnnotations.
	// +optional
	Annotations *MetadataOverride `json:"annotations,omitempty"`

	// podLabels changes the labels of the pods, in the pod template: most kinds make their pods anew for it. Labels that the workload's
	// selector chooses pods by cannot be changed.
	// +optional
	PodLabels *MetadataOverride `json:"podLabels,omitempty"`

	// podAnnotations changes the annotations of the pods, in the pod template: most kinds make their pods anew for it.
	// +optional
	PodAnnotations *MetadataOverride `json:"podAnnotations,omitempty"`

	// replicas is the number that each of the clusters runs, instead of spec.replicas or of its share of it. clusters chooses them by names
	// alone: what a cluster is to run must not hang on a label. When division.type is Divided, the other clusters are divided what is left of
	// spec.replicas, and numbers that add up to more than it are refused. A cluster that the placement does not choose gets nothing by it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Replicas *int32 `json:"replicas,omitempty"`

	// partition holds back part of an update, for kinds that have one: a number of pods, or a percentage such as 50%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^([0-9]{1,2}|100)%$')",message="must be a number of pods such as 3, or a percentage such as 50%"
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// patches are RFC 6902 operations on the whole manifest, applied after everything else of this override.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []PatchOperation `json:"patches,omitempty"`
}

// ImageOverride changes parts of one container's image; parts left empty stay as they are.
// +kubebuilder:validation:XValidation:rule="has(self.registry) || has(self.repository) || has(self.tag) || has(self.digest)",message="set at least one of registry, repository, tag and digest"
// +kubebuilder:validation:XValidation:rule="!(has(self.tag) && has(self.digest))",message="tag and digest exclude each other"
type ImageOverride struct {
	// container is the name of a container or init container of the pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// registry replaces the registry host, such as registry.example.com:5000.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Registry string `json:"registry,omitempty"`

	// repository replaces the path behind the registry, such as library/nginx.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Repository string `json:"repository,omitempty"`

	// tag replaces the tag; it also removes a digest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`

	// digest replaces the digest, such as sha256:...; it also removes a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Digest string `json:"digest,omitempty"`
}

// CommandOverride replaces one container's command.
type CommandOverride struct {
	// container is the name of a container or init container of the pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// command is the whole new command.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	Command []string `json:"command,omitempty"`
}

// ArgsOverride replaces one container's arguments.
type ArgsOverride struct {
	// container is the name of a container or init container of the pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// args are the whole new arguments.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`
}

// EnvOverride changes one container's environment.
type EnvOverride struct {
	// container is the name of a container or init container of the pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// set adds variables or replaces those of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Set []EnvVar `json:"set,omitempty"`

	// remove takes variables out by name; a name that is not there is left out in silence.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=253
	Remove []string `json:"remove,omitempty"`
}

// EnvVar is one environment variable, with a literal value or one from elsewhere.
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="value and valueFrom exclude each other"
type EnvVar struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// value of the variable. When absent, and valueFrom too: the empty string.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Value string `json:"value,omitempty"`

	// valueFrom is where the cluster takes the value from. With dependencies: Propagate, the Secret or ConfigMap is sent along to the
	// clusters of the override.
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where the value of a variable comes from, written as in a container.
// +kubebuilder:validation:XValidation:rule="(has(self.secretKeyRef) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.fieldRef) ? 1 : 0) == 1",message="set exactly one of secretKeyRef, configMapKeyRef and fieldRef"
type EnvVarSource struct {
	// secretKeyRef is a key of a Secret in the workload's namespace.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// configMapKeyRef is a key of a ConfigMap in the workload's namespace.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`

	// fieldRef is a field of the pod.
	// +optional
	FieldRef *FieldReference `json:"fieldRef,omitempty"`
}

// KeyReference names a key of a Secret or ConfigMap.
type KeyReference struct {
	// name of the Secret or ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	// optional pods start without it. When absent: false.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// FieldReference names a field of the pod.
type FieldReference struct {
	// fieldPath leads to the field, such as metadata.name or status.podIP.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	FieldPath string `json:"fieldPath,omitempty"`
}

// ResourcesOverride changes one container's resources.
type ResourcesOverride struct {
	// container is the name of a container or init container of the pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// requests replaces the named requests, such as cpu: 1 or cpu: 500m.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Requests map[corev1.ResourceName]Quantity `json:"requests,omitempty"`

	// limits replaces the named limits, such as memory: 1Gi.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Limits map[corev1.ResourceName]Quantity `json:"limits,omitempty"`
}

// MetadataOverride sets and removes labels or annotations.
type MetadataOverride struct {
	// set adds entries or replaces those of the same key.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Set map[string]string `json:"set,omitempty"`

	// remove takes entries out by key; a key that is not there is left out in silence.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	Remove []string `json:"remove,omitempty"`
}

// PatchOp is one operation of RFC 6902.
// +kubebuilder:validation:Enum=add;remove;replace
type PatchOp string

const (
	// PatchOpAdd adds a value; its parent must be there.
	PatchOpAdd PatchOp = "add"
	// PatchOpRemove removes a value that is there.
	PatchOpRemove PatchOp = "remove"
	// PatchOpReplace replaces a value that is there.
	PatchOpReplace PatchOp = "replace"
)

// PatchOperation is one operation of RFC 6902 on the manifest.
type PatchOperation struct {
	// op is the operation.
	// +required
	Op PatchOp `json:"op,omitempty"`

	// path is an RFC 6901 pointer into the manifest, such as /spec/template/spec/containers/0/image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`

	// value to add or to replace with: any JSON. Required for add and replace, not allowed for remove; the operator checks
	// it, as CEL does not see fields that may hold anything.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.scale.replicas,selectorpath=.status.scale.selector
// +kubebuilder:resource:shortName=fw,categories=all
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.status.backend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clustersReady`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.template.kind`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:selectablefield:JSONPath=`.spec.backend`
// +kubebuilder:selectablefield:JSONPath=`.status.backend`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters: backends use it in labels"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.workload) || self.spec.template.kind == oldSelf.spec.template.kind && (self.spec.template.apiVersion.contains('/') ? self.spec.template.apiVersion.split('/')[0] : '') == (oldSelf.spec.template.apiVersion.contains('/') ? oldSelf.spec.template.apiVersion.split('/')[0] : '')",message="the kind of spec.template cannot change once the operator carries the workload; create another FleetWorkload for another kind"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.workload) || (has(self.spec.template.metadata) && has(self.spec.template.metadata.name) ? self.spec.template.metadata.name : self.metadata.name) == (has(oldSelf.spec.template.metadata) && has(oldSelf.spec.template.metadata.name) ? oldSelf.spec.template.metadata.name : oldSelf.metadata.name)",message="metadata.name of spec.template cannot change once the operator carries the workload; create another FleetWorkload for another object"

// FleetWorkload says that one workload runs on a fleet of clusters, and shows one status for all of them.
type FleetWorkload struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the wanted state.
	// +required
	Spec FleetWorkloadSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status FleetWorkloadStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// FleetWorkloadList is a list of FleetWorkloads.
type FleetWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the FleetWorkloads.
	Items []FleetWorkload `json:"items"`
}

func init() {
	SchemeBuilder.Register(&FleetWorkload{}, &FleetWorkloadList{})
}
