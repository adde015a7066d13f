-- The whole status, and the fields that rules ask for, under their flat names: only CEL knows what it reads.
local function extra(observedObj, field)
  local ok, v = pcall(lookup, observedObj, field.path)
  if ok and type(v) ~= "table" then
    return v
  end
  return nil
end

function ReflectStatus(observedObj)
  local reflected = {}
  if not object(observedObj) then
    return reflected
  end
  local metadata, status = observedObj.metadata, observedObj.status
  if not object(metadata) then
    metadata = {}
  end
  if object(status) then
    for name, v in pairs(status) do
      reflected[name] = v
    end
  elseif status ~= nil then
    reflected["fleetworkload.io/malformed"] = type(status)
  end
  for _, field in ipairs(extras) do
    reflected[field.name] = extra(observedObj, field)
  end
  reflected.fleetworkloadRevision = annotation(metadata, "@revision@")
  reflected.fleetworkloadUID = identity(metadata)
  reflected.generation = metadata.generation
  reflected.resourceTemplateGeneration = templateGeneration(metadata)
  return reflected
end
