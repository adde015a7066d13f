local function replicasOf(manifest)
  local ok, raw = pcall(lookup, manifest, replicasPath)
  if ok and raw == nil then
    ok, raw = pcall(defaultReplicas, manifest)
  end
  local right, n = pcall(whole, raw, 0, 1000000)
  if not ok or not right then
    error(table.concat(replicasPath, ".") .. " must be a whole number from 0 to 1000000", 0)
  end
  return n
end

-- Without requirements a workload of 0 replicas goes to all clusters of its placement; with them it goes to none, and
-- scaling to 0 would delete it everywhere.
function GetReplicas(desiredObj)
  local n = replicasOf(desiredObj)
  local template = podTemplate(desiredObj)
  if n == 0 or not object(template) then
    return n, nil
  end
  local ok, requirements = pcall(require("kube").accuratePodRequirements, template)
  return n, ok and requirements or nil
end
