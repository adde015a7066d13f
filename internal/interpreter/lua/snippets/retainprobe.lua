-- A manifest that only probes is never written: how many replicas the member object is to run is told as the reason. What
-- Karmada's own interpreter keeps of a Deployment is kept of all kinds: replicas that an HPA on the member decides. That Karmada may
-- overwrite what it finds stays with Karmada, which reads it there alone: the end of that is then no change of the member object.
function Retain(desiredObj, observedObj)
  keepApart(desiredObj, observedObj)
  local metadata = desiredObj.metadata
  local annotations = object(metadata) and metadata.annotations
  if object(annotations) and annotations["@resolution@"] == "overwrite" then
    annotations["@resolution@"] = "abort"
  end
  local labels = object(metadata) and metadata.labels
  if not object(labels) then
    return desiredObj
  end
  local ok, n = pcall(lookup, observedObj, replicasPath)
  if not ok or type(n) ~= "number" then
    n = nil
  end
  if labels["@probe@"] ~= nil then
    error(string.format("@answer@%s@end@", n == nil and "?" or string.format("%d", n)), 0)
  end
  if labels["resourcetemplate.karmada.io/retain-replicas"] ~= "true" or n == nil then
    return desiredObj
  end
  local at = desiredObj
  for i = 1, #replicasPath - 1 do
    if not object(at[replicasPath[i]]) then
      return desiredObj
    end
    at = at[replicasPath[i]]
  end
  at[replicasPath[#replicasPath]] = n
  return desiredObj
end
