-- A ManifestWorkReplicaSet is healthy when every cluster of its placements has its ManifestWork, and that is there as it is now.
local hs = {status = "Progressing", message = "Open Cluster Management has not looked at it yet"}
if obj.status == nil or obj.status.conditions == nil then
  return hs
end
local by = {}
for _, condition in ipairs(obj.status.conditions) do
  by[condition.type] = condition
end
local placement, works = by.PlacementVerified, by.ManifestworkApplied
local summary = obj.status.summary or {}
local available, total = summary.available or 0, summary.desiredTotal or summary.total or 0
if placement ~= nil and placement.status == "False" then
  hs.status, hs.message = "Degraded", "placement: " .. placement.reason .. " " .. (placement.message or "")
elseif works == nil then
  hs.message = "no ManifestWork has been made yet"
elseif works.reason == "NotAsExpected" or (summary.degraded or 0) > 0 then
  hs.status, hs.message = "Degraded", "a cluster cannot apply its ManifestWork " .. (works.message or "")
elseif works.status == "True" and total > 0 and available >= total then
  hs.status, hs.message = "Healthy", "available on " .. available .. " clusters"
else
  hs.message = "available on " .. available .. " of " .. total .. " clusters"
end
return hs
