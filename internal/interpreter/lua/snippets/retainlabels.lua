-- The labels that the controller put on the pod template stay.
function Retain(desiredObj, observedObj)
  keepApart(desiredObj, observedObj)
  local path = {"spec", "template", "metadata", "labels"}
  local ok, labels = pcall(lookup, observedObj, path)
  if not ok or not object(labels) or next(labels) == nil then
    return desiredObj
  end
  local at = desiredObj
  for _, key in ipairs(path) do
    if at[key] == nil then
      at[key] = {}
    end
    at = at[key]
    if not object(at) then
      return desiredObj
    end
  end
  for key, v in pairs(labels) do
    if at[key] == nil then
      at[key] = v
    end
  end
  return desiredObj
end
