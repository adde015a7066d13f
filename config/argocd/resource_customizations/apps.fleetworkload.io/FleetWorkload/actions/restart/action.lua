-- As kubectl rollout restart does it.
local os = require("os")
local pods = obj.spec.template.spec.template
if pods.metadata == nil then
  pods.metadata = {}
end
if pods.metadata.annotations == nil then
  pods.metadata.annotations = {}
end
pods.metadata.annotations["kubectl.kubernetes.io/restartedAt"] = os.date("!%Y-%m-%dT%XZ")
return obj
