local function readStatus(status)
  if not object(status) or status["fleetworkload.io/malformed"] ~= nil then
    malformed()
  end
  local values = {}
  for _, field in ipairs(fields) do
    values[field.name] = readField(status, field)
  end
  return values
end

-- The generations, and lists, are no evidence that its controller has looked at the object.
local function seen(values)
  for _, field in ipairs(fields) do
    local name = field.name
    if values[name] ~= nil and field.type ~= "count"
      and (statusOptional or (name ~= "generation" and name ~= "resourceTemplateGeneration")) then
      return true
    end
  end
  return false
end
