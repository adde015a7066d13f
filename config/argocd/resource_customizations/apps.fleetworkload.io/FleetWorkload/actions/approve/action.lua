-- The hand-over's next wave may begin, or the one that failed is tried again.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["fleetworkload.io/approve-migration"] = obj.status.migration.approval
return obj
