-- A ManifestWork is healthy when its cluster has all its manifests, as they are now. Whether what they describe works is theirs to say, or the
-- work's where its manifestConfigs have rules for it.
local hs = {status = "Progressing", message = "the cluster's agent has not reported yet"}
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
-- Two controllers of the agent write conditions, so that one may be of an older generation than the other.
local by, last_applied = {}, nil
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Applied" then
    last_applied = condition
  end
  if condition.observedGeneration == obj.metadata.generation then
    by[condition.type] = condition
  end
end
local applied, available, degraded, progressing, complete = by.Applied, by.Available, by.Degraded, by.Progressing, by.Complete
if last_applied == nil then
  return hs
elseif applied == nil and complete ~= nil and complete.status == "True" then
  hs.status, hs.message = "Degraded", "the work is complete, and its agent applies no newer manifests"
elseif applied == nil then
  hs.message = "the cluster's agent has not seen the newest manifests yet"
elseif applied.status ~= "True" then
  hs.status, hs.message = "Degraded", applied.message
elseif degraded ~= nil and degraded.status == "True" then
  hs.status, hs.message = "Degraded", degraded.message
elseif available == nil or available.status == "Unknown" then
  hs.message = "the cluster's agent has not said yet whether everything is there"
elseif available.status ~= "True" then
  hs.status, hs.message = "Degraded", available.message
elseif progressing ~= nil and progressing.status ~= "False" then
  hs.message = progressing.message
else
  hs.status, hs.message = "Healthy", available.message
end
return hs
