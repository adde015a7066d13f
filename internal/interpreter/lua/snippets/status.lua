-- A status is nested as the object has it, or flat under the names of fields; a flat value counts first.
local function readField(status, field)
  local v = nil
  if field.path ~= nil then
    v = convert(lookup(status, field.path), field.type)
  end
  if status[field.name] ~= nil then
    v = convert(status[field.name], field.type)
  end
  return v
end
