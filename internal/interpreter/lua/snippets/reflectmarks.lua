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

local function identity(metadata)
  if type(metadata.uid) == "string" then
    return metadata.uid
  end
  return nil
end
