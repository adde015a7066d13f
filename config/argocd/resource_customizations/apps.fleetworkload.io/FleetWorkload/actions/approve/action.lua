-- The hand-over's next wave may begin, or the one that failed is tried again; or else the change that waits is carried out.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
local migration = obj.status.migration or {}
if migration.approval ~= nil then
  obj.metadata.annotations["fleetworkload.io/approve-migration"] = migration.approval
else
  obj.metadata.annotations["fleetworkload.io/approve-change"] = obj.status.change.approval
end
return obj
