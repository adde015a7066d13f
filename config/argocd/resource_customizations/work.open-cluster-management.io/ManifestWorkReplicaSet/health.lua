-- A ManifestWorkReplicaSet is healthy when every cluster of its placements has a ManifestWork of the newest template, and what that says is
-- there. Its status has no observedGeneration: between an edit and the first look at it nothing tells that the status is of the spec before.
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
local applied, available, degraded = summary.applied or 0, summary.available or 0, summary.degraded or 0
-- A placement says "1 (2 / 3 clusters applied)" when 2 of its 3 clusters have a ManifestWork of the newest template. Total counts these 2.
local updated, wanted = 0, 0
for _, placed in ipairs(obj.status.placementSummary or {}) do
  local of_newest, of_all = string.match(placed.availableDecisionGroups or "", "%((%d+) / (%d+) ")
  updated, wanted = updated + (tonumber(of_newest) or 0), wanted + (tonumber(of_all) or 0)
end
if wanted == 0 then
  updated, wanted = summary.total or 0, summary.total or 0
end
-- True: the agents have seen the newest template, too. Open Cluster Management 1.2 says it only where a rule for Progressing is in the template.
local rolled_out = by.PlacementRolledOut ~= nil and by.PlacementRolledOut.status == "True"
local ruled = false
for _, config in ipairs(((obj.spec or {}).manifestWorkTemplate or {}).manifestConfigs or {}) do
  for _, rule in ipairs(config.conditionRules or {}) do
    ruled = ruled or rule.condition == "Progressing"
  end
end
if placement ~= nil and placement.status == "False" then
  hs.status, hs.message = "Degraded", "placement: " .. placement.reason
  if placement.message ~= "" then
    hs.message = hs.message .. " " .. placement.message
  end
elseif works == nil then
  hs.message = "no ManifestWork has been made yet"
elseif degraded > 0 then
  hs.status, hs.message = "Degraded", degraded .. " of " .. wanted .. " clusters report it degraded"
elseif updated < wanted then
  hs.message = updated .. " of " .. wanted .. " clusters have the newest template"
elseif ruled and not rolled_out then
  hs.message = "being rolled out; applied on " .. applied .. " and available on " .. available .. " of " .. wanted .. " clusters"
elseif available < wanted and rolled_out then
  hs.status, hs.message = "Degraded", "rolled out, but available on " .. available .. " of " .. wanted .. " clusters"
elseif available < wanted or works.status ~= "True" then
  -- NotAsExpected is also what it says of ManifestWorks that agents have not seen yet.
  hs.message = "applied on " .. applied .. " and available on " .. available .. " of " .. wanted .. " clusters"
else
  hs.status, hs.message = "Healthy", "available on " .. available .. " clusters"
end
return hs
