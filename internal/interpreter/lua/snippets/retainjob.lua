-- The selector and the labels of the pod template are what the member's controller has made them: they cannot change.
function Retain(desiredObj, observedObj)
  keepApart(desiredObj, observedObj)
  for _, path in ipairs({{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}}) do
    local ok, labels = pcall(lookup, observedObj, path)
    if ok and object(labels) and next(labels) ~= nil then
      local at = desiredObj
      for i = 1, #path - 1 do
        if at[path[i]] == nil then
          at[path[i]] = {}
        end
        at = at[path[i]]
        if not object(at) then
          return desiredObj
        end
      end
      at[path[#path]] = labels
    end
  end
  return desiredObj
end
