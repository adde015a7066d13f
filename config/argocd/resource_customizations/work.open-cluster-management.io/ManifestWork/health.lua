-- A ManifestWork is healthy when its cluster has all its manifests, as they are now. Whether what they describe works is theirs to say.
local hs = {status = "Progressing", message = "the cluster's agent has not reported yet"}
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
local by = {}
for _, condition in ipairs(obj.status.conditions) do
  by[condition.type] = condition
end
local applied, available, degraded = by.Applied, by.Available, by.Degraded
if applied == nil then
  return hs
end
hs.message = applied.message
if applied.observedGeneration ~= obj.metadata.generation then
  hs.message = "the cluster's agent has not seen the newest manifests yet"
elseif applied.status ~= "True" then
  hs.status = "Degraded"
elseif degraded ~= nil and degraded.status == "True" then
  hs.status, hs.message = "Degraded", degraded.message
elseif available == nil or available.status == "Unknown" then
  hs.message = "the cluster's agent has not said yet whether everything is there"
elseif available.status ~= "True" then
  hs.status, hs.message = "Degraded", available.message
else
  hs.status, hs.message = "Healthy", available.message
end
return hs
