-- What stands for a value of the wrong type, under the flat name of its field. It must not vanish on the way, because
-- absence means something else.
local wrong = {int = false, count = false, long = false, string = false, bool = "malformed"}
local shapes = {string = "a string", number = "a number", boolean = "a boolean", table = "a list"}

function ReflectStatus(observedObj)
  local reflected = {}
  if not object(observedObj) then
    return reflected
  end
  local metadata, status = observedObj.metadata, observedObj.status
  if not object(metadata) then
    metadata = {}
  end
  reflected.fleetworkloadRevision = annotation(metadata, "@revision@")
  reflected.fleetworkloadUID = identity(metadata)
  if status == nil then
    status = {}
  elseif not object(status) then
    reflected["fleetworkload.io/malformed"] = shapes[type(status)]
    return reflected
  end
  if metadata.generation ~= nil then
    status.generation = metadata.generation
  end
  status.resourceTemplateGeneration = templateGeneration(metadata)
  for _, field in ipairs(fields) do
    local ok, v = pcall(readField, status, field)
    if not ok then
      reflected[field.name] = wrong[field.type]
    elseif field.type == "count" then
      reflected[field.name] = v
    elseif v ~= nil then
      put(reflected, field.path or {field.name}, v)
    end
  end
  return reflected
end
