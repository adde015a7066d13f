-- A FleetWorkload tells its health by its conditions; see docs/conditions.md.
local hs = {status = "Progressing", message = "the operator has not looked at it yet"}
local status = obj.status
if status == nil or status.conditions == nil then
  return hs
end
if status.observedGeneration ~= obj.metadata.generation then
  hs.message = "the operator has not looked at the newest spec yet"
  return hs
end
local by = {}
for _, condition in ipairs(status.conditions) do
  by[condition.type] = condition
end
local ready, stalled = by.Ready, by.Stalled
if ready == nil then
  return hs
end
local health = {
  -- It waits for a person who knows of it.
  Suspended = "Suspended", Paused = "Suspended", MigrationNeedsApproval = "Suspended", AwaitingApproval = "Suspended",
  -- Some of its pods do not run, or nobody can tell whether they do.
  Degraded = "Degraded", ApplyFailed = "Degraded", Stale = "Degraded", BackendUnavailable = "Unknown",
}
hs.message = ready.message
if ready.status == "True" then
  hs.status = "Healthy"
elseif health[ready.reason] ~= nil then
  hs.status = health[ready.reason]
elseif stalled ~= nil and stalled.status == "True" then
  hs.status, hs.message = "Degraded", stalled.message
end
return hs
