local function shareOf(subset, desired)
  if type(subset.replicas) == "number" then
    return subset.replicas
  end
  local digits = string.match(subset.replicas, "^([0-9][0-9]?[0-9]?)%%$")
  local percent = digits ~= nil and tonumber(digits) or 101
  if percent > 100 then
    malformed()
  end
  return math.floor(desired * percent / 100 + 0.5)
end

-- The bounds of each subset's replicas.
local function sizesOf(subsets, desired)
  local sizes, open, left = {}, 0, desired
  for i, subset in ipairs(subsets) do
    if subset.elastic then
      for j = 1, #subsets do
        sizes[j] = {least = 0, most = desired}
      end
      return sizes
    elseif subset.replicas == nil then
      open = open + 1
    else
      local n = shareOf(subset, desired)
      sizes[i] = {least = n, most = n}
      left = left - n
    end
  end
  left = math.max(left, 0)
  for i, subset in ipairs(subsets) do
    if subset.replicas == nil then
      sizes[i] = {least = math.floor(left / open), most = math.floor((left + open - 1) / open)}
    end
  end
  return sizes
end

local function partitionsOf(manifest)
  local strategy = lookup(manifest, {"spec", "updateStrategy", "type"})
  if strategy ~= nil and strategy ~= "" and strategy ~= "Manual" then
    return {}
  end
  local raw, partitions = lookup(manifest, {"spec", "updateStrategy", "manualUpdate", "partitions"}), {}
  if raw == nil then
    return {}
  elseif not object(raw) then
    malformed()
  end
  for name, v in pairs(raw) do
    local n = convert(v, "int")
    if n > 0 then
      partitions[name] = n
    end
  end
  return partitions
end

-- How many pods the partitions keep old; nil where that depends on what the controller decides.
local function unitedKept(manifest, desired)
  if lookup(manifest, {"spec", "template", "deploymentTemplate"}) ~= nil then
    return 0
  end
  local partitions = partitionsOf(manifest)
  if next(partitions) == nil then
    return 0
  end
  local subsets, total = subsetsOf(manifest), 0
  if desired == nil then
    return nil
  end
  local sizes = sizesOf(subsets, desired)
  for i, subset in ipairs(subsets) do
    local partition, size = partitions[subset.name] or 0, sizes[i]
    if partition <= size.least then
      total = total + partition
    elseif size.least == size.most then
      total = total + size.least
    else
      return nil
    end
  end
  return total
end
