local function give(field, total, v)
  total.count = total.count + 1
  local how = field.combine
  if how == "sum" then
    total.value = (total.value or 0) + v
  elseif how == "any" or how == "all" then
    if v == "True" or v == true then
      total.yes = total.yes + 1
    end
  elseif total.value == nil then
    total.value = v
  elseif how == "equal" then
    total.differ = total.differ or total.value ~= v
  elseif how == "min" then
    if v < total.value then
      total.value = v
    end
  elseif how == "max" or how == "maxAll" then
    if v > total.value then
      total.value = v
    end
  elseif how == "worst" then
    local new, old = field.order[v] or 0, field.order[total.value] or 0
    if new < old or (new == old and v < total.value) then
      total.value = v
    end
  end
end

-- A condition that does not hold is left out, as job controllers do.
local function outcome(field, total, fleet)
  local how = field.combine
  if how == "any" then
    return total.yes > 0 and "True" or nil
  elseif how == "all" then
    return total.yes == fleet.clusters and "True" or nil
  elseif (how == "maxAll" and total.count < fleet.clusters) or total.differ then
    return nil
  elseif how == "sum" and total.count > 0 and total.value > 2147483647 then
    return nil -- more than the field holds: some cluster is wrong, and nobody knows which
  end
  return total.value
end

local function generationOf(desiredObj)
  local metadata = desiredObj.metadata
  return object(metadata) and type(metadata.generation) == "number" and metadata.generation or 0
end

-- The template's newest generation is observed when the member object was made from it and its controller has taken
-- note of the member object's newest generation.
local function current(values, generation)
  return values.observedGeneration ~= nil and values.generation ~= nil
    and values.observedGeneration >= values.generation
    and (values.resourceTemplateGeneration or 0) >= generation
end

local function fold(statusItems, generation)
  local fleet, totals = {clusters = 0, reported = 0, current = true}, {}
  for _, field in ipairs(fields) do
    totals[field.name] = {count = 0, yes = 0, differ = false}
  end
  for _, item in ipairs(statusItems) do
    fleet.clusters = fleet.clusters + 1
    local ok, values = pcall(readStatus, item.status)
    if ok and seen(values) then
      fleet.reported = fleet.reported + 1
      fleet.current = fleet.current and current(values, generation)
      for _, field in ipairs(fields) do
        local v = values[field.name]
        if v == nil and field.zero then
          v = 0
        end
        if v ~= nil and field.combine ~= nil then
          give(field, totals[field.name], v)
        end
      end
    end
  end
  return fleet, totals
end

-- The status is left alone when no cluster has reported: nothing is known then.
function AggregateStatus(desiredObj, statusItems)
  local generation = generationOf(desiredObj)
  local fleet, totals = fold(type(statusItems) == "table" and statusItems or {}, generation)
  if fleet.reported == 0 then
    return desiredObj
  end
  local status = {}
  for _, field in ipairs(fields) do
    local v = outcome(field, totals[field.name], fleet)
    if v == nil and field.required then
      v = field.type == "int" and 0 or ""
    end
    if v ~= nil then
      put(status, field.path or {field.name}, v)
    end
  end
  if observes then
    local before = object(desiredObj.status) and desiredObj.status.observedGeneration or nil
    if fleet.reported == fleet.clusters and fleet.current then
      status.observedGeneration = generation
    elseif type(before) == "number" then
      status.observedGeneration = before
    end
  end
  desiredObj.status = next(status) ~= nil and status or nil
  return desiredObj
end
