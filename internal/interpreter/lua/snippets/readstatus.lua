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
