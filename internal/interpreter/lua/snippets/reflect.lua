-- What stands for a value of the wrong type, under the flat name of its field. It must not vanish on the way, because
-- absence means something else.
local wrong = {int = false, long = false, string = false, bool = "malformed"}
local shapes = {string = "a string", number = "a number", boolean = "a boolean", table = "a list"}

local function annotation(metadata, name)
  local annotations = metadata.annotations
  if object(annotations) and type(annotations[name]) == "string" then
    return annotations[name]
  end
  return nil
end

local function templateGeneration(metadata)
  local text = annotation(metadata, "resourcetemplate.karmada.io/generation")
  if text ~= nil and #text <= 15 and string.match(text, "^[0-9]+$") then
    return tonumber(text, 10)
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
  reflected.fleetworkloadRevision = annotation(metadata, "@revision@")
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
    elseif v ~= nil then
      put(reflected, field.path or {field.name}, v)
    end
  end
  return reflected
end
