local function subsetsOf(manifest)
  local raw, subsets = lookup(manifest, {"spec", "topology", "subsets"}), {}
  if raw == nil then
    return subsets
  elseif not list(raw) then
    malformed()
  end
  for i, element in ipairs(raw) do
    if not object(element) then
      malformed()
    end
    local name, replicas = element.name, convert(element.replicas, "partition")
    if type(name) ~= "string" or name == "" or (type(replicas) == "number" and replicas < 0) then
      malformed()
    end
    subsets[i] = {name = name, replicas = replicas, elastic = element.minReplicas ~= nil or element.maxReplicas ~= nil}
  end
  return subsets
end

-- A UnitedDeployment without spec.replicas means the sum of its subsets, when all have numbers.
local function unitedReplicas(manifest)
  local subsets, total = subsetsOf(manifest), 0
  if #subsets == 0 then
    return nil
  end
  for _, subset in ipairs(subsets) do
    if type(subset.replicas) ~= "number" then
      return nil
    end
    total = total + subset.replicas
  end
  if total > 2147483647 then
    malformed()
  end
  return total
end
