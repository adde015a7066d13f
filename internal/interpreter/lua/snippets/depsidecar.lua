-- A SidecarSet has the containers of a pod in its own spec. They run where the pods are that it injects; only
-- spec.namespace says where that is.
function GetDependencies(desiredObj)
  local spec, namespace = child(desiredObj, "spec"), child(child(desiredObj, "metadata"), "namespace")
  if type(child(spec, "namespace")) == "string" then
    namespace = spec.namespace
  end
  local found, add = references(namespace)
  pod(add, {
    initContainers = child(spec, "initContainers"), containers = child(spec, "containers"),
    volumes = child(spec, "volumes"), imagePullSecrets = child(spec, "imagePullSecrets"),
  })
  return found
end
